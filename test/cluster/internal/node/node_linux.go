// Package node is the machine on which the cluster runs: a network namespace, a mount namespace, a
// cgroup, and the processes in them. It also has the clients for these processes.
package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// ErrNotRunning and errStale are errors of commands that require a running cluster.
var (
	ErrNotRunning = errors.New("no cluster runs here: start it with `make cluster-up`")
	errStale      = errors.New("the cluster that runs here belongs to a removed directory: `make cluster-up` replaces it")
)

// Node is the node of the cluster of one clone.
type Node struct {
	layout.Layout
	mu     sync.Mutex
	client *http.Client
}

// New returns the node, whether or not it exists.
func New(l layout.Layout) *Node { return &Node{Layout: l} }

// Prepare creates the namespaces and the cgroup.
func (n *Node) Prepare(ctx context.Context) error {
	if err := n.createRun(); err != nil {
		return err
	}
	if err := n.createNetwork(ctx); err != nil {
		return err
	}
	if err := host.WriteFile(n.State("kubernetes"), []byte(n.kubernetes()), 0o644); err != nil {
		return err
	}
	if err := n.createMounts(); err != nil {
		return err
	}
	return n.createCgroups()
}

func (n *Node) kubernetes() string {
	if n.Oldest {
		return "oldest"
	}
	return "newest"
}

// HasKubernetes returns an error if a running cluster has another Kubernetes than the layout.
func (n *Node) HasKubernetes() error {
	if n.Running() != nil {
		return nil //nolint:nilerr // no cluster runs, so it has no other Kubernetes
	}
	running, err := os.ReadFile(n.State("kubernetes"))
	if err != nil || string(running) == n.kubernetes() {
		return ignoreNotExist(err)
	}
	return fmt.Errorf("the cluster has the %s Kubernetes: run `bin/cluster down` first, or set CLUSTER_KUBERNETES=%s", running, running)
}

// HasNetwork reports whether the network namespace exists.
func (n *Node) HasNetwork() bool { return isNamespace(n.NetNS()) }

// Exists reports whether both namespaces exist.
func (n *Node) Exists() bool { return n.HasNetwork() && isNamespace(n.MountNS()) }

// IsStale reports whether the namespaces belong to directories that were replaced, for example by
// another clone at the same path. In the node, /run/bin and /run/cluster then are the removed
// directories, so no program can start. Remove is the remedy.
func (n *Node) IsStale() (stale bool, err error) {
	if !n.Exists() {
		return false, nil
	}
	binds := n.binds()
	current := make([]fs.FileInfo, len(binds))
	for i, b := range binds {
		current[i], err = os.Stat(b.source)
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("failed to look for the cluster's directories: %w", err)
		}
	}
	err = n.inNode(func() error {
		for i, b := range binds {
			// A mount keeps its removed directory, so no other directory gets the same inode.
			bound, err := os.Stat(b.target)
			if err != nil {
				return fmt.Errorf("failed to look for the node's directories: %w", err)
			}
			stale = stale || !os.SameFile(current[i], bound)
		}
		return nil
	})
	return stale, err
}

// Running returns an error if no cluster runs here, or the cluster of a removed directory.
func (n *Node) Running() error {
	if !n.HasNetwork() {
		return ErrNotRunning
	}
	if stale, err := n.IsStale(); err != nil || stale {
		return cmp.Or(err, errStale)
	}
	return nil
}

// IsInside reports whether this program runs in the cluster's network.
func (n *Node) IsInside() bool { return sameNamespace(os.Getpid(), "net", n.NetNS()) }

// Remove stops the cluster and removes its namespaces, cgroups, and files. The node's mount
// namespace ends with its last process. All of its mounts and the network namespaces of Pods end
// with it.
func (n *Node) Remove(ctx context.Context) error {
	if err := n.stopAll(ctx); err != nil {
		return fmt.Errorf("failed to stop the cluster: %w", err)
	}
	if err := n.removeCgroups(ctx); err != nil {
		return err
	}
	for _, path := range []string{n.MountNS(), n.NetNS(), n.RunDir()} {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("failed to unmount %s: %w", path, err)
		}
	}
	// Never remove files through an existing mount.
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	for _, dir := range []string{n.RunDir(), n.State()} {
		if i := slices.IndexFunc(mounts, func(m mountPoint) bool { return m.path == dir || m.isBelow(dir) }); i >= 0 {
			return fmt.Errorf("failed to remove %s: %s is still mounted", dir, mounts[i].path)
		}
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("failed to remove %s: %w", dir, err)
		}
	}
	return nil
}
