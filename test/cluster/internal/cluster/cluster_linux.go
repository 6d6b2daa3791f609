// Package cluster starts, stops, and examines the cluster of one clone.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/example/nginx-operator/test/cluster/internal/components"
	"github.com/example/nginx-operator/test/cluster/internal/debian"
	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/images"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/node"
	"github.com/example/nginx-operator/test/cluster/internal/olm"
	"github.com/example/nginx-operator/test/cluster/internal/olmv1"
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

// Up starts the cluster, or the components that do not run.
func (c *Cluster) Up(ctx context.Context) error {
	if err := c.Node.HasKubernetes(); err != nil {
		return err
	}
	if c.healthy(ctx) {
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
	if c.healthy(ctx) {
		c.Progress.Step("the cluster is up")
		return nil
	}
	if err := debian.Install(ctx, c.Progress); err != nil {
		return err
	}
	if err := tools.Build(ctx, c.Node.Layout, nil, c.Progress); err != nil {
		return err
	}
	if err := c.installSelf(); err != nil {
		return err
	}
	if err := tools.BuildPause(ctx, c.Node.Layout, c.Progress); err != nil {
		return err
	}
	if err := c.dropLeftovers(ctx); err != nil {
		return err
	}
	if err := c.prepareNode(ctx); err != nil {
		return err
	}
	if err := c.startComponents(ctx); err != nil {
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

// startComponents starts the components that do not run and waits until all of them work.
func (c *Cluster) startComponents(ctx context.Context) error {
	if err := c.launch(components.Etcd, components.Registry, components.Gateway, components.Containerd); err != nil {
		return err
	}
	if err := c.await(ctx, components.Etcd); err != nil {
		return err
	}
	if err := c.launch(components.APIServer); err != nil {
		return err
	}
	// Push the images while the API server starts.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var pushes sync.WaitGroup
	pushes.Go(func() {
		err := c.await(ctx, components.Registry)
		if err == nil {
			err = c.PushOwn(ctx)
		}
		if err != nil {
			cancel(err)
		}
	})
	err := c.startNode(ctx)
	if err == nil {
		pushes.Wait()
	}
	// An error of the images comes first, because it causes the other errors.
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (c *Cluster) startNode(ctx context.Context) error {
	for _, component := range []components.Component{components.Gateway, components.Containerd, components.APIServer} {
		if err := c.await(ctx, component); err != nil {
			return err
		}
	}
	if err := c.launch(components.Rest...); err != nil {
		return err
	}
	for _, component := range components.Rest {
		if err := c.await(ctx, component); err != nil {
			return err
		}
	}
	c.Progress.Step("waiting for the node, for DNS and for metrics")
	for _, check := range []func(context.Context) error{
		c.Node.Ready, c.Node.ServiceAccountReady, c.Node.DNSReady, c.Node.RegisterMetrics, c.Node.MetricsReady,
	} {
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

// OLM starts the cluster and installs the Operator Lifecycle Manager.
func (c *Cluster) OLM(ctx context.Context) error {
	return c.upWith(ctx, "OLM", olm.Ready, func() error { return olm.Install(ctx, c.Node, c.Progress) })
}

// OLMv1 starts the cluster and installs OLM v1.
func (c *Cluster) OLMv1(ctx context.Context) error {
	return c.upWith(ctx, "OLM v1", olmv1.Ready, func() error {
		if err := c.PushOLMv1(ctx); err != nil {
			return err
		}
		return olmv1.Install(ctx, c.Node, c.Progress)
	})
}

// upWith starts the cluster and calls install if ready returns an error.
func (c *Cluster) upWith(ctx context.Context, what string, ready func(context.Context, *node.Node) error, install func() error) error {
	if err := c.Up(ctx); err != nil {
		return err
	}
	if ready(ctx, c.Node) != nil {
		unlock, err := c.lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		if err := install(); err != nil {
			return err
		}
	}
	c.Progress.Step("%s is installed", what)
	return nil
}

// Exec replaces this program with a command in the cluster's network.
func (c *Cluster) Exec(args []string) error { return c.Node.Exec(args) }

// installSelf copies this program to bin/cluster, where the node runs it. `go run` requires this
// copy.
func (c *Cluster) installSelf() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("failed to find this program: %w", err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil || self == c.Node.Bin("cluster") {
		return err
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return fmt.Errorf("failed to read this program: %w", err)
	}
	// A running program cannot be overwritten, but it can be replaced.
	written := c.Node.Bin("cluster.new")
	if err := host.WriteFile(written, data, 0o755); err != nil {
		return err
	}
	if err := os.Rename(written, c.Node.Bin("cluster")); err != nil {
		return fmt.Errorf("failed to install this program: %w", err)
	}
	return nil
}
