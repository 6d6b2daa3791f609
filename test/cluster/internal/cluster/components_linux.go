package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/example/nginx-operator/test/cluster/internal/components"
	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/node"
)

// launch starts the components that do not run. If a component ran before and died, launch prints
// the end of its log.
func (c *Cluster) launch(list ...components.Component) error {
	var stopped []components.Component
	var names []string
	for _, component := range list {
		pid, err := c.Node.PID(component.Name)
		if err != nil {
			return err
		}
		if pid != 0 {
			c.watch(component.Name)
			continue
		}
		if c.Node.WasStarted(component.Name) {
			c.Progress.Step("%v", c.Node.Died(component.Name))
		}
		stopped, names = append(stopped, component), append(names, component.Name)
	}
	if len(stopped) > 0 {
		c.Progress.Step("starting %s", strings.Join(names, ", "))
	}
	for _, component := range stopped {
		if err := c.Node.Start(component); err != nil {
			return err
		}
		c.watch(component.Name)
	}
	return nil
}

// waitFor calls check until it succeeds. It returns early if a watched component dies.
func (c *Cluster) waitFor(ctx context.Context, check func(context.Context) error) error {
	return host.Poll(ctx, startTimeout, pollInterval, func(ctx context.Context) error {
		if err := c.anyDied(); err != nil {
			return host.FinalError{Err: err}
		}
		return check(ctx)
	})
}

// await waits until a component works.
func (c *Cluster) await(ctx context.Context, component components.Component) error {
	err := c.waitFor(ctx, func(ctx context.Context) error { return c.Node.Check(ctx, component) })
	if err != nil {
		if pid, pidErr := c.Node.PID(component.Name); pidErr == nil && pid != 0 && ctx.Err() == nil && !errors.As(err, new(node.DiedError)) {
			return fmt.Errorf("%s runs but does not work (try cluster down): %w; the end of %s:\n%s",
				component.Name, err, c.Node.Log(component.Name), c.Node.LogTail(component.Name))
		}
		return fmt.Errorf("failed to start %s: %w", component.Name, err)
	}
	return nil
}

func (c *Cluster) watch(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched = append(c.watched, name)
}

// anyDied returns an error for the first watched component that no longer runs.
func (c *Cluster) anyDied() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.watched {
		pid, err := c.Node.PID(name)
		if err != nil {
			return err
		}
		if pid == 0 {
			return c.Node.Died(name)
		}
	}
	return nil
}

// healthy reports whether the cluster has the parts, the node is ready, and the parts and all
// components work.
func (c *Cluster) healthy(ctx context.Context, parts []layout.Part) bool {
	fails := func(s componentStatus) bool { return s.err != nil }
	if !c.Node.Exists() || c.Node.Running() != nil || slices.ContainsFunc(c.examine(ctx), fails) || c.Node.Ready(ctx) != nil {
		return false
	}
	return !slices.ContainsFunc(c.Node.WithStarted(parts), func(p layout.Part) bool { return !c.works(ctx, p) })
}

// componentStatus is the process ID of a component, or 0 if it does not run, and the reason why it
// does not work.
type componentStatus struct {
	component components.Component
	pid       int
	err       error
}

// examine checks the components of the cluster's parts in parallel.
func (c *Cluster) examine(ctx context.Context) []componentStatus {
	all := slices.Concat(components.First, components.Rest(c.Node.WithStarted(nil)))
	found := make([]componentStatus, len(all))
	var wait sync.WaitGroup
	for i, component := range all {
		wait.Go(func() {
			s := componentStatus{component: component}
			s.pid, s.err = c.Node.PID(component.Name)
			switch {
			case s.err != nil:
			case s.pid == 0 && c.Node.WasStarted(component.Name):
				s.err = errors.New("died")
			case s.pid == 0:
				s.err = errors.New("not started")
			default:
				s.err = c.Node.Check(ctx, component)
			}
			found[i] = s
		})
	}
	wait.Wait()
	return found
}

// Status prints the state of the components and of the node.
func (c *Cluster) Status(ctx context.Context) error {
	if err := c.Node.Running(); err != nil {
		return err
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
		_, _ = fmt.Fprintf(out, "%s\t%d\t%s\t%s\n", s.component.Name, s.pid, state, c.Node.Log(s.component.Name))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("failed to print: %w", err)
	}
	if failures > 0 {
		return fmt.Errorf("%d components do not work: cluster up starts what died", failures)
	}
	if err := c.Node.Ready(ctx); err != nil {
		return err
	}
	fmt.Println("The node is ready.")
	for _, part := range c.Node.WithStarted(nil) {
		if !c.works(ctx, part) {
			return fmt.Errorf("the part %s does not work: cluster up repairs it", part)
		}
		fmt.Printf("The part %s works.\n", part)
	}
	return nil
}
