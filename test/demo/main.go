// Command demo goes from a fresh clone to a page that nginx serves: cluster, OLM, images, catalog, Subscription, an
// NginxOperator, and a request to it. What is there already is used, so a second run takes seconds. `make demo` runs it.
//
//	demo           run all steps
//	demo get URL   send one HTTP request and print the answer; for use inside of the cluster's network
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "get" {
		return get(ctx, args[1], os.Stdout)
	}
	if len(args) > 0 {
		return errors.New("unknown arguments: run `make demo`, or `demo get URL`")
	}
	d, err := newDemo()
	if err != nil {
		return err
	}
	began := time.Now()
	for _, step := range d.steps() {
		if err := step.do(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("\nDone in %s. Try next:\n\n%s", seconds(time.Since(began)), d.hints())
	return nil
}

// step is one thing that the demo does.
type step struct {
	name string
	// limit bounds it; building everything for the first time takes minutes.
	limit time.Duration
	run   func(context.Context) error
	// look is a command that shows more where the step fails.
	look string
}

// do runs a step and tells how long it took, or what to look at where it failed.
func (s step) do(ctx context.Context) error {
	fmt.Printf("==> %s\n", s.name)
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	err := s.run(limited)
	took := seconds(time.Since(began))
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted in step %q", s.name)
	case err != nil && limited.Err() != nil:
		return fmt.Errorf("step %q was not done within %s: %w\nLook at: %s", s.name, s.limit, err, s.look)
	case err != nil:
		return fmt.Errorf("step %q failed after %s: %w\nLook at: %s", s.name, took, err, s.look)
	}
	fmt.Printf("    done in %s\n", took)
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
