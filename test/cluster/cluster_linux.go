package main

// This file brings the cluster up and down and says how it is.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// startTimeout bounds the wait for one component: generous, because a loaded machine is slow and what died is
	// noticed at once anyway.
	startTimeout = 3 * time.Minute
	// healthTimeout bounds one look at a component.
	healthTimeout = 2 * time.Second
	pollInterval  = 50 * time.Millisecond
)

// cluster is what the commands work with.
type cluster struct {
	layout
	progress *progress
	clients  *clients

	mu sync.Mutex
	// watched are the components that run as far as this command knows.
	watched []string
}

func newCluster(l layout, p *progress) *cluster {
	return &cluster{layout: l, progress: p, clients: &clients{layout: l}}
}

// lock keeps two commands of one clone from getting in each other's way. It is a lock on the clone's folder itself: there
// is no file to leave behind.
func (c *cluster) lock(ctx context.Context) (unlock func(), err error) {
	dir, err := os.Open(c.repo)
	if err != nil {
		return nil, fmt.Errorf("failed to open the repository: %w", err)
	}
	announced := false
	err = poll(ctx, 30*time.Minute, 200*time.Millisecond, func(context.Context) error {
		err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != nil && !announced {
			announced = true
			c.progress.step("waiting for another command on this cluster")
		}
		return err
	})
	if err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("failed to lock the cluster: %w", err)
	}
	return func() { _ = dir.Close() }, nil
}

// up starts what does not run yet.
func (c *cluster) up(ctx context.Context) error {
	if c.healthy(ctx) {
		c.progress.step("the cluster is up")
		return nil
	}
	if os.Geteuid() != 0 {
		return unavailable("this needs root")
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if c.healthy(ctx) {
		c.progress.step("the cluster is up")
		return nil
	}
	if err := installPackages(ctx, c.progress); err != nil {
		return err
	}
	if err := c.buildTools(ctx, nil, c.progress); err != nil {
		return err
	}
	if err := c.installSelf(); err != nil {
		return err
	}
	if err := c.buildPause(ctx, c.progress); err != nil {
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
	c.progress.step("the cluster is up: bin/cluster exec -- kubectl get nodes")
	return nil
}

// dropLeftovers removes what a reboot left of a cluster: without its namespaces the rest cannot go on.
func (c *cluster) dropLeftovers(ctx context.Context) error {
	if _, err := os.Stat(c.state("processes")); err != nil {
		return ignoreNotExist(err)
	}
	if isNamespace(c.netns()) && isNamespace(c.mountns()) {
		return nil
	}
	c.progress.step("removing what is left of an earlier cluster")
	return c.remove(ctx)
}

// prepareNode makes the namespaces, the certificates and the configuration.
func (c *cluster) prepareNode(ctx context.Context) error {
	c.progress.step("network %s, certificates, configuration", c.id)
	if err := c.createPKI(); err != nil {
		return err
	}
	snapshotter := "overlayfs"
	if !c.supportsOverlay() {
		snapshotter = "native"
		c.progress.step("overlay mounts do not work here: images are copied, which is slower")
	}
	if err := c.writeConfig(snapshotter); err != nil {
		return err
	}
	if err := c.createRun(); err != nil {
		return err
	}
	if err := c.createNetwork(ctx); err != nil {
		return err
	}
	if err := c.createMounts(); err != nil {
		return err
	}
	return c.createCgroups()
}

// startComponents starts what does not run and waits until everything works.
func (c *cluster) startComponents(ctx context.Context) error {
	if err := c.launch(etcdComponent, registryComponent, gatewayComponent, containerdComponent); err != nil {
		return err
	}
	if err := c.await(ctx, etcdComponent); err != nil {
		return err
	}
	if err := c.launch(apiServerComponent); err != nil {
		return err
	}
	// The images are pushed while the API server starts.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var images sync.WaitGroup
	images.Go(func() {
		err := c.await(ctx, registryComponent)
		if err == nil {
			err = c.pushClusterImages(ctx)
		}
		if err != nil {
			cancel(err)
		}
	})
	err := c.startNode(ctx)
	if err == nil {
		images.Wait()
	}
	// What went wrong with the images comes first: it made the rest fail.
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (c *cluster) startNode(ctx context.Context) error {
	for _, component := range []component{gatewayComponent, containerdComponent, apiServerComponent} {
		if err := c.await(ctx, component); err != nil {
			return err
		}
	}
	rest := components[slices.IndexFunc(components, func(c component) bool { return c.name == apiServerComponent.name })+1:]
	if err := c.launch(rest...); err != nil {
		return err
	}
	for _, component := range rest {
		if err := c.await(ctx, component); err != nil {
			return err
		}
	}
	c.progress.step("waiting for the node and for DNS")
	for _, check := range []func(context.Context) error{c.clients.nodeReady, c.clients.serviceAccountReady, c.clients.lookup} {
		err := poll(ctx, startTimeout, pollInterval, func(ctx context.Context) error {
			if err := c.anyDied(); err != nil {
				return finalError{err}
			}
			return check(ctx)
		})
		if err != nil {
			return fmt.Errorf("failed to wait for the node: %w", err)
		}
	}
	return nil
}

// launch starts the components that do not run. One that ran before and died is named, with the end of its log.
func (c *cluster) launch(list ...component) error {
	for _, component := range list {
		pid, err := c.pid(component.name)
		if err != nil {
			return err
		}
		if pid != 0 {
			c.watch(component.name)
			continue
		}
		if c.wasStarted(component.name) {
			c.progress.step("%v\n--- starting %s again", c.died(component.name), component.name)
		} else {
			c.progress.step("starting %s", component.name)
		}
		if err := c.start(component); err != nil {
			return err
		}
		c.watch(component.name)
	}
	return nil
}

// await waits until a component works. It ends as soon as any component has died.
func (c *cluster) await(ctx context.Context, component component) error {
	err := poll(ctx, startTimeout, pollInterval, func(ctx context.Context) error {
		if err := c.anyDied(); err != nil {
			return finalError{err}
		}
		return c.clients.check(ctx, component)
	})
	if err != nil {
		if pid, pidErr := c.pid(component.name); pidErr == nil && pid != 0 && ctx.Err() == nil && !errors.As(err, new(diedError)) {
			return fmt.Errorf("%s runs but does not work (try cluster down): %w; the end of %s:\n%s",
				component.name, err, c.log(component.name), c.logTail(component.name))
		}
		return fmt.Errorf("failed to start %s: %w", component.name, err)
	}
	return nil
}

func (c *cluster) watch(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched = append(c.watched, name)
}

// anyDied returns an error about the first watched component that does not run any more.
func (c *cluster) anyDied() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.watched {
		pid, err := c.pid(name)
		if err != nil {
			return err
		}
		if pid == 0 {
			return c.died(name)
		}
	}
	return nil
}

// healthy reports whether every component runs and works.
func (c *cluster) healthy(ctx context.Context) bool {
	if !isNamespace(c.netns()) || !isNamespace(c.mountns()) {
		return false
	}
	return !slices.ContainsFunc(c.examine(ctx), func(s componentStatus) bool { return s.err != nil }) &&
		c.clients.nodeReady(ctx) == nil && c.imagesPushed()
}

// componentStatus is what is known about a component.
type componentStatus struct {
	component component
	pid       int
	err       error
}

// examine looks at all components at once.
func (c *cluster) examine(ctx context.Context) []componentStatus {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	found := make([]componentStatus, len(components))
	var wait sync.WaitGroup
	for i, component := range components {
		wait.Go(func() {
			s := componentStatus{component: component}
			s.pid, s.err = c.pid(component.name)
			switch {
			case s.err != nil:
			case s.pid == 0 && c.wasStarted(component.name):
				s.err = errors.New("died")
			case s.pid == 0:
				s.err = errors.New("not started")
			default:
				s.err = c.clients.check(ctx, component)
			}
			found[i] = s
		})
	}
	wait.Wait()
	return found
}

// status prints what runs.
func (c *cluster) status(ctx context.Context) error {
	if !isNamespace(c.netns()) {
		return errNotRunning
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(out, "COMPONENT\tPID\tSTATE\tLOG")
	failures := 0
	for _, s := range c.examine(ctx) {
		state := "works"
		if s.err != nil {
			failures++
			state = s.err.Error()
		}
		_, _ = fmt.Fprintf(out, "%s\t%d\t%s\t%s\n", s.component.name, s.pid, state, c.log(s.component.name))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("failed to print: %w", err)
	}
	if failures > 0 {
		return fmt.Errorf("%d components do not work: cluster up starts what died", failures)
	}
	if err := c.clients.nodeReady(ctx); err != nil {
		return err
	}
	fmt.Println("The node is ready.")
	return nil
}

// down stops and removes everything.
func (c *cluster) down(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return unavailable("this needs root")
	}
	if sameNamespace(os.Getpid(), "net", c.netns()) {
		return errors.New("failed to stop the cluster from inside of it: run this without cluster exec")
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	c.progress.step("stopping the cluster")
	if err := c.remove(ctx); err != nil {
		return err
	}
	c.progress.step("the cluster is gone")
	return nil
}

// remove leaves nothing of the cluster behind. With the last process in it the node's mount namespace ends, and with
// that every mount and every network namespace of a Pod.
func (c *cluster) remove(ctx context.Context) error {
	if err := c.stopAll(ctx); err != nil {
		return fmt.Errorf("failed to stop the cluster: %w", err)
	}
	if err := c.removeCgroups(ctx); err != nil {
		return err
	}
	for _, path := range []string{c.mountns(), c.netns(), c.run()} {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("failed to unmount %s: %w", path, err)
		}
	}
	// Never remove files through a mount that is still there.
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	for _, dir := range []string{c.run(), c.state()} {
		if i := slices.IndexFunc(mounts, func(m string) bool { return m == dir || isBelow(m, dir) }); i >= 0 {
			return fmt.Errorf("failed to remove %s: %s is still mounted", dir, mounts[i])
		}
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("failed to remove %s: %w", dir, err)
		}
	}
	return nil
}
