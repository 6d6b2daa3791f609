// Command demo goes from a fresh clone to a page that nginx serves: cluster, OLM, images, catalog, Subscription, an
// NginxOperator, and a request to it. What is there already is used, so a second run takes seconds. `make demo` runs it.
//
// It can also show what happens when the operator is upgraded, from the first release to this one, with clients that count
// every answer that fails. `make demo-upgrade` runs that.
//
//	demo           run all steps
//	demo upgrade   walk from the first release to this one
//	demo walk      the part of `upgrade` that runs inside of the cluster's network; `upgrade` comes to it by itself
//	demo get URL   send one HTTP request and print the answer; for use inside of the cluster's network
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
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
	switch strings.Join(args, " ") {
	case "":
		return serve(ctx)
	case "upgrade":
		return prepareUpgrade(ctx)
	case "walk":
		return walk(ctx)
	default:
		return errors.New("unknown arguments: run `make demo`, `make demo-upgrade`, or `demo get URL`")
	}
}

// serve goes from a fresh clone to a page.
func serve(ctx context.Context) error {
	d, err := newDemo("make demo")
	if err != nil {
		return err
	}
	began := time.Now()
	if err := doAll(ctx, d.steps()); err != nil {
		return err
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

// doAll runs steps one after the other, up to the first that fails.
func doAll(ctx context.Context, steps []step) error {
	for _, step := range steps {
		if err := step.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// do runs a step and prints how long it took, or what to look at where it failed.
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
