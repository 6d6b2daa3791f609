// Package node is the machine on which the cluster runs: a network namespace, a mount namespace, a
// cgroup, and the processes in them. It also has the clients for these processes.
package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// ErrNotRunning is the error of commands that require a running cluster.
var ErrNotRunning = errors.New("no cluster runs here: start it with `make cluster-up`")

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
	if err := n.createMounts(); err != nil {
		return err
	}
	return n.createCgroups()
}

// HasNetwork reports whether the network namespace exists.
func (n *Node) HasNetwork() bool { return isNamespace(n.NetNS()) }

// Exists reports whether both namespaces exist.
func (n *Node) Exists() bool { return n.HasNetwork() && isNamespace(n.MountNS()) }

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
