package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
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
