package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRun checks that the steps run in order and that nothing runs after a failure.
func TestRun(t *testing.T) {
	var ran []string
	wrong := errors.New("wrong")
	steps, err := run([]string{"one", "two", "three"}, func(name string) error {
		ran = append(ran, name)
		if name == "two" {
			return wrong
		}
		return nil
	})
	if want := []string{"one", "two"}; !slices.Equal(ran, want) || !errors.Is(err, wrong) {
		t.Errorf("ran %v with error %v, want %v", ran, err, want)
	}
	if len(steps) != 2 || steps[0].err != nil || !errors.Is(steps[1].err, wrong) {
		t.Errorf("got the steps %v", steps)
	}
}

// TestMakeTargetIsEnded checks that make ends if the context is canceled.
func TestMakeTargetIsEnded(t *testing.T) {
	t.Chdir(t.TempDir())
	makefile := "all:\n\techo begun > fifo\n\tsleep 100\n"
	if err := errors.Join(os.WriteFile("Makefile", []byte(makefile), 0o600), syscall.Mkfifo("fifo", 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- makeTarget(ctx, "all") }()
	if _, err := os.ReadFile("fifo"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "failed at all") {
		t.Errorf("it ended with %v", err)
	}
}

// TestTable checks that the output has each step, the failed step, and the total.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	table(&out, []step{{"verify", 12 * time.Second, 20, nil}, {"integration", 61 * time.Second, 120.4, errors.New("wrong")}})
	_, got, _ := strings.Cut(out.String(), "processors:\n")
	want := `seconds  core-seconds  step
     12            20  verify
     61           120  integration (failed)
     73           140  total
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestReports checks that reports of an earlier run do not count.
func TestReports(t *testing.T) {
	dir, began := t.TempDir(), time.Now().Add(-time.Minute)
	for name, written := range map[string]time.Time{"e2e.json": began.Add(-time.Second), "integration.json": began, "unit.json": began} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(file, []byte(name+"\n"), 0o600), os.Chtimes(file, written, written)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := reports(dir, began); err != nil || string(got) != "integration.json\nunit.json\n" {
		t.Errorf("got %q, error %v", got, err)
	}
}

// TestProcessorTime checks that the time grows while a processor is busy.
func TestProcessorTime(t *testing.T) {
	before, began := processorTime(), time.Now()
	for processorTime() == before {
		if time.Since(began) > time.Minute {
			t.Fatalf("it is still %f", before)
		}
	}
}

// TestKeep checks that the logs of a failed run replace the logs of an earlier run, and that
// missing logs are no error.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	logs, kept := filepath.Join(dir, "logs"), filepath.Join(dir, "dist", "kept")
	if err := keep(logs, kept); err != nil {
		t.Errorf("without logs: %v", err)
	}
	for _, name := range []string{"first", "second"} {
		if err := os.RemoveAll(logs); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(logs, name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := keep(logs, kept); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(kept); err != nil || len(entries) != 1 || entries[0].Name() != "second" {
		t.Errorf("kept %v, error %v", entries, err)
	}
}
