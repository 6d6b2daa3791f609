// Package node is the machine that the cluster believes to run on: a network and a mount namespace, a cgroup, the processes
// in them, and what talks to these.
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

// ErrNotRunning is the error of commands that need a cluster.
var ErrNotRunning = errors.New("no cluster runs here: start it with `make cluster-up`")

// Node is the node of the cluster of one clone.
type Node struct {
	layout.Layout
	mu     sync.Mutex
	client *http.Client
}

// New returns the node, whether it is there or not.
func New(l layout.Layout) *Node { return &Node{Layout: l} }

// Prepare makes the namespaces and the cgroup.
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

// HasNetwork reports whether the network namespace is there.
func (n *Node) HasNetwork() bool { return isNamespace(n.NetNS()) }

// Exists reports whether both namespaces are there.
func (n *Node) Exists() bool { return n.HasNetwork() && isNamespace(n.MountNS()) }

// IsInside reports whether this program runs in the cluster's network.
func (n *Node) IsInside() bool { return sameNamespace(os.Getpid(), "net", n.NetNS()) }

// Remove leaves nothing of the cluster behind. With the last process in it the node's mount namespace ends, and with
// that every mount and every network namespace of a Pod.
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
	// Never remove files through a mount that is still there.
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
