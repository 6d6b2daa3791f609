// Package cluster starts, stops, and examines the cluster of one clone.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/example/nginx-operator/test/cluster/internal/components"
	"github.com/example/nginx-operator/test/cluster/internal/debian"
	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/images"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/node"
	"github.com/example/nginx-operator/test/cluster/internal/pki"
	"github.com/example/nginx-operator/test/cluster/internal/tools"
)

const (
	// startTimeout bounds the wait for one component. It is long, because a loaded machine is slow.
	// It does not delay the error for a component that dies.
	startTimeout = 3 * time.Minute
	pollInterval = 50 * time.Millisecond
)

// Cluster is the cluster of one clone.
type Cluster struct {
	images.Store
	mu sync.Mutex
	// watched has the names of the components that this command started or found running.
	watched []string
}

// New returns the cluster, whether or not it runs.
func New(l layout.Layout, progress *host.Progress) *Cluster {
	return &Cluster{Store: images.Store{Node: node.New(l), Progress: progress}}
}

// lock serializes the commands of one clone. It locks the clone's directory itself, so no lock file
// remains.
func (c *Cluster) lock(ctx context.Context) (unlock func(), err error) {
	dir, err := os.Open(c.Node.Repo)
	if err != nil {
		return nil, fmt.Errorf("failed to open the repository: %w", err)
	}
	announced := false
	err = host.Poll(ctx, 30*time.Minute, 200*time.Millisecond, func(context.Context) error {
		err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != nil && !announced {
			announced = true
			c.Progress.Step("waiting for another command on this cluster")
		}
		return err
	})
	if err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("failed to lock the cluster: %w", err)
	}
	return func() { _ = dir.Close() }, nil
}

// Up starts parts of the cluster, or what is missing of them and of the parts that it already has.
func (c *Cluster) Up(ctx context.Context, parts []layout.Part) error {
	if err := c.Node.HasKubernetes(); err != nil {
		return err
	}
	if c.healthy(ctx, parts) {
		c.Progress.Step("the cluster is up")
		return nil
	}
	if os.Geteuid() != 0 {
		return host.Unavailable("this needs root")
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if c.healthy(ctx, parts) {
		c.Progress.Step("the cluster is up")
		return nil
	}
	if err := c.dropLeftovers(ctx); err != nil {
		return err
	}
	parts = c.Node.WithStarted(parts)
	// What needs no Go compiler: packages, those of nginx, and the program of the pause image.
	var nginx []string
	err = tools.Build(ctx, c.Node.Layout, tools.OfParts(c.Node.Layout, parts), c.Progress, func(ctx context.Context) error {
		if err := debian.Install(ctx, c.Progress); err != nil {
			return err
		}
		var err error
		if nginx, err = c.Nginx(ctx, debian.Stable); err != nil {
			return err
		}
		return tools.BuildPause(ctx, c.Node.Layout, c.Progress)
	})
	if err != nil {
		return err
	}
	if err := c.prepareNode(ctx); err != nil {
		return err
	}
	if err := c.start(ctx, parts, nginx); err != nil {
		return err
	}
	c.Progress.Step("the cluster is up: bin/cluster exec -- kubectl get nodes")
	return nil
}

// dropLeftovers removes a cluster that cannot continue: a reboot ended its namespaces, or its clone
// was removed, and this clone is at the same path.
func (c *Cluster) dropLeftovers(ctx context.Context) error {
	stale, err := c.Node.IsStale()
	if err != nil {
		return err
	}
	if !stale {
		if _, err := os.Stat(c.Node.State("processes")); errors.Is(err, fs.ErrNotExist) || c.Node.Exists() {
			return nil
		} else if err != nil {
			return fmt.Errorf("failed to look for an earlier cluster: %w", err)
		}
	}
	c.Progress.Step("removing an earlier cluster, whose directories or namespaces are gone")
	return c.remove(ctx)
}

// remove stops and removes everything. It fails inside the cluster, because it would end its own
// caller.
func (c *Cluster) remove(ctx context.Context) error {
	if c.Node.IsInside() {
		return errors.New("failed to stop the cluster from inside of it: run this without cluster exec")
	}
	return c.Node.Remove(ctx)
}

// prepareNode creates the certificates, the configuration, and the namespaces.
func (c *Cluster) prepareNode(ctx context.Context) error {
	c.Progress.Step("network %s, certificates, configuration", c.Node.ID)
	if err := pki.Create(c.Node.Layout); err != nil {
		return err
	}
	snapshotter := "overlayfs"
	if !c.Node.SupportsOverlay() {
		snapshotter = "native"
		c.Progress.Step("overlay mounts do not work here: images are copied, which is slower")
	}
	if err := components.WriteConfig(c.Node.Layout, snapshotter); err != nil {
		return err
	}
	return c.Node.Prepare(ctx)
}

// start starts what does not run of the parts, and waits until all of it works. nginx are the
// packages of nginx.
func (c *Cluster) start(ctx context.Context, parts []layout.Part, nginx []string) error {
	if err := c.launch(components.Etcd, components.Registry, components.Gateway, components.Containerd); err != nil {
		return err
	}
	if err := c.await(ctx, components.Etcd); err != nil {
		return err
	}
	if err := c.launch(components.APIServer); err != nil {
		return err
	}
	// Push the images while the API server starts. An error in one of the two ends the other.
	missing := slices.DeleteFunc(slices.Clone(parts), c.hasStarted)
	tasks, tasksCtx := errgroup.WithContext(ctx)
	tasks.Go(func() error {
		if err := c.await(tasksCtx, components.Registry); err != nil {
			return err
		}
		return c.PushParts(tasksCtx, missing, nginx)
	})
	tasks.Go(func() error { return c.startNode(tasksCtx, parts) })
	if err := tasks.Wait(); err != nil {
		return err
	}
	tasks, tasksCtx = errgroup.WithContext(ctx)
	for _, part := range parts {
		tasks.Go(func() error { return c.install(tasksCtx, part) })
	}
	return tasks.Wait()
}

// startNode starts the components that need the API server, and waits until all components work.
func (c *Cluster) startNode(ctx context.Context, parts []layout.Part) error {
	c.Progress.Step("waiting for the API server")
	for _, component := range components.First {
		if err := c.await(ctx, component); err != nil {
			return err
		}
	}
	rest := components.Rest(parts)
	if err := c.launch(rest...); err != nil {
		return err
	}
	c.Progress.Step("waiting for the node and for DNS")
	for _, component := range rest {
		if err := c.await(ctx, component); err != nil {
			return err
		}
	}
	for _, check := range []func(context.Context) error{c.Node.Ready, c.Node.ServiceAccountReady, c.Node.DNSReady} {
		if err := c.waitFor(ctx, check); err != nil {
			return fmt.Errorf("failed to wait for the node: %w", err)
		}
	}
	return nil
}

// Down stops and removes everything.
func (c *Cluster) Down(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return host.Unavailable("this needs root")
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	c.Progress.Step("stopping the cluster")
	if err := c.remove(ctx); err != nil {
		return err
	}
	c.Progress.Step("the cluster is gone")
	return nil
}

// Exec replaces this program with a command in the cluster's network.
func (c *Cluster) Exec(args []string) error { return c.Node.Exec(args) }
