// Command gate runs Makefile targets in order until one fails. It prints the duration of each
// target, the free disk space after it, and the reason for a failure.
//
//	gate [-report FILE]... [-logs DIR] [-finally TARGET] TARGET...
//
// A report is a file that gotestsum writes with --jsonfile. The output lists the slowest tests of
// all reports. It ends with the last lines of the failed tests, so that the end of a long log shows
// the reason. The -finally target runs after a failure too, as CI requires. The -logs directory is
// copied before that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// step is a target that ran, with its duration, the free disk space after it in bytes, and its error.
type step struct {
	target string
	took   time.Duration
	free   uint64
	err    error
}

// reports is a flag that can be repeated.
type reports []string

func (r *reports) String() string { return strings.Join(*r, " ") }

func (r *reports) Set(value string) error {
	*r = append(*r, value)
	return nil
}

// shown is the number of slowest tests in the output. keptLogs is the directory for the logs of a
// failed run.
const (
	shown    = 20
	keptLogs = "dist/cluster-logs"
)

func main() {
	var files reports
	flag.Var(&files, "report", "a `file` that gotestsum wrote; may be repeated")
	logs := flag.String("logs", "", "a `directory` of logs that is copied to "+keptLogs+" after a failure")
	last := flag.String("finally", "", "a `target` that is made at the end in any case")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	began := time.Now()
	steps, failure := run(flag.Args(), func(name string) error { return makeTarget(ctx, name) })
	total := time.Since(began)
	tests, err := ended(existing(files, began))
	table(os.Stdout, steps, total, slowest(tests, shown))
	explain(os.Stdout, tests)
	stop()
	if err = errors.Join(failure, err); err != nil && *logs != "" {
		err = errors.Join(err, keep(*logs, keptLogs))
	}
	if *last != "" {
		err = errors.Join(err, makeTarget(context.Background(), *last))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(1)
	}
}

// run runs the targets in order and stops after the first failure.
func run(targets []string, target func(name string) error) ([]step, error) {
	var steps []step
	for _, name := range targets {
		began := time.Now()
		err := target(name)
		steps = append(steps, step{name, time.Since(began), freeSpace(), err})
		if err != nil {
			return steps, err
		}
	}
	return steps, nil
}

// freeSpace returns the free space of the file system in bytes, or 0 if it is not known.
func freeSpace() uint64 {
	var found syscall.Statfs_t
	if err := syscall.Statfs(".", &found); err != nil {
		return 0
	}
	return found.Bavail * uint64(found.Bsize) //nolint:gosec // a block has a positive size
}

// makeTarget runs make. If ctx ends, make receives SIGTERM, so that the gate can still report.
func makeTarget(ctx context.Context, name string) error {
	cmd := exec.CommandContext(ctx, "make", name)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("failed at %s: %w", name, err)
	}
	return nil
}

// keep copies a directory of logs. The directory does not exist if the run failed before the
// cluster started.
func keep(dir, kept string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	kept, err := filepath.Abs(kept)
	if err == nil {
		err = errors.Join(os.RemoveAll(kept), os.MkdirAll(filepath.Dir(kept), 0o755))
	}
	if err == nil {
		err = exec.Command("cp", "-R", dir, kept).Run()
	}
	if err != nil {
		return fmt.Errorf("failed to keep the logs: %w", err)
	}
	fmt.Println("The logs of the cluster and of its Pods are in " + kept)
	return nil
}

// existing returns the reports that were written after since. If a run fails early, older reports
// are from an earlier run.
func existing(files []string, since time.Time) []string {
	var out []string
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.ModTime().After(since) {
			out = append(out, file)
		}
	}
	return out
}

// table prints the steps, the total, and the slowest tests.
func table(out io.Writer, steps []step, total time.Duration, tests []test) {
	row := func(seconds float64, what string) { _, _ = fmt.Fprintf(out, "%7.0f s  %s\n", seconds, what) }
	_, _ = fmt.Fprintln(out, "\nWhere the time went:")
	for _, s := range steps {
		what := s.target
		if s.err != nil {
			what += " (failed)"
		}
		what += fmt.Sprintf(", %.1f GiB of disk space free", float64(s.free)/(1<<30))
		row(s.took.Seconds(), what)
	}
	row(total.Seconds(), "total")
	if len(tests) > 0 {
		_, _ = fmt.Fprintln(out, "\nThe slowest tests:")
	}
	for _, one := range tests {
		row(one.elapsed.Seconds(), one.name())
	}
}

// explain prints the last lines of each failed test. If a test has failed subtests, it prints only
// the subtests.
func explain(out io.Writer, tests []test) {
	for _, one := range tests {
		inner := func(other test) bool {
			return other.failed && other.pkg == one.pkg && strings.HasPrefix(other.test, one.test+"/")
		}
		if one.failed && !slices.ContainsFunc(tests, inner) {
			_, _ = fmt.Fprintf(out, "\nFailed: %s\n%s", one.name(), strings.Join(one.last, ""))
		}
	}
}
