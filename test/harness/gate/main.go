// Command gate runs Makefile targets in order until one fails. It prints the duration of each
// target, and the processor time that the machine needed for it.
//
//	gate [-logs DIR] [-finally TARGET] TARGET...
//
// The output ends with the slowest tests and the output of the failed tests, so that the end of a
// long log shows the reason. Both come from the reports in dist that gotestsum wrote in this run.
// The -finally target runs after a failure too, as CI requires. The -logs directory is copied
// before that.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// step is a target that ran, with its duration, its processor time in seconds, and its error.
type step struct {
	target string
	took   time.Duration
	busy   float64
	err    error
}

// keptLogs is the directory for the logs of a failed run.
const keptLogs = "dist/cluster-logs"

func main() {
	logs := flag.String("logs", "", "a `directory` of logs that is copied to "+keptLogs+" after a failure")
	last := flag.String("finally", "", "a `target` that is made at the end in any case")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	began := time.Now()
	steps, err := run(flag.Args(), func(name string) error { return makeTarget(ctx, name) })
	stop()
	table(os.Stdout, steps)
	// Without tests, or without gotestsum, the table is all there is to print.
	if results, readErr := reports("dist", began); readErr == nil && len(results) > 0 {
		gotestsum(results, "tool", "slowest", "--num=20", "--threshold=5s")
		gotestsum(results, "--format=none", "--hide-summary=skipped", "--raw-command", "--", "cat")
	}
	if err != nil && *logs != "" {
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
		began, before := time.Now(), processorTime()
		err := target(name)
		steps = append(steps, step{name, time.Since(began), processorTime() - before, err})
		if err != nil {
			return steps, err
		}
	}
	return steps, nil
}

// processorTime returns the seconds for which the machine's processors were busy since it started.
// It includes daemons, such as those of the local cluster. It returns 0 if it is not known.
func processorTime() float64 {
	var user, nice, system, idle, iowait, irq, softirq float64
	stat, _ := os.ReadFile("/proc/stat")
	if _, err := fmt.Sscanf(string(stat), "cpu %f %f %f %f %f %f %f", &user, &nice, &system, &idle, &iowait, &irq, &softirq); err != nil {
		return 0
	}
	return (user + nice + system + irq + softirq) / 100
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
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	err := errors.Join(os.RemoveAll(kept), os.MkdirAll(filepath.Dir(kept), 0o755))
	if err == nil {
		err = exec.Command("cp", "-R", dir, kept).Run()
	}
	if err != nil {
		return fmt.Errorf("failed to keep the logs: %w", err)
	}
	fmt.Println("The logs of the cluster and of its Pods are in " + kept)
	return nil
}

// table prints the steps and their total.
func table(out io.Writer, steps []step) {
	_, _ = fmt.Fprintf(out, "\nWhere the time went, on %d processors:\nseconds  core-seconds  step\n", runtime.NumCPU())
	total := step{target: "total"}
	for _, s := range steps {
		total.took, total.busy = total.took+s.took, total.busy+s.busy
	}
	for _, s := range append(steps, total) {
		if s.err != nil {
			s.target += " (failed)"
		}
		_, _ = fmt.Fprintf(out, "%7.0f  %12.0f  %s\n", s.took.Seconds(), s.busy, s.target)
	}
}

// reports returns the content of the reports that were written after since. If a run fails early,
// older reports are from an earlier run.
func reports(dir string, since time.Time) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	var out []byte
	for _, file := range files {
		info, statErr := os.Stat(file)
		if statErr == nil && info.ModTime().Before(since) {
			continue
		}
		content, readErr := os.ReadFile(file)
		out, err = append(out, content...), errors.Join(err, statErr, readErr)
	}
	return out, err
}

// gotestsum prints what gotestsum finds in test results. It exits with an error if a test failed.
func gotestsum(results []byte, args ...string) {
	fmt.Println()
	cmd := exec.Command("bin/gotestsum", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(results), os.Stdout, os.Stdout
	_ = cmd.Run()
}
