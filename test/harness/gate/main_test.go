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

// TestTable checks that the output has each step, the total, the slowest tests of all reports, and
// the failed tests with their last lines.
func TestTable(t *testing.T) {
	write := func(name string, lines ...string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	unit := write("test.json",
		`{"Action":"run","Package":"example.com/a/b","Test":"TestRuns"}`,
		`{"Action":"output","Package":"example.com/a/b","Test":"TestSlow","Output":"text"}`,
		`{"Action":"pass","Package":"example.com/a/b","Test":"TestSlow","Elapsed":20.4}`,
		`{"Action":"pass","Package":"example.com/a/b","Test":"TestSlow/part/detail","Elapsed":19}`,
		`{"Action":"pass","Package":"example.com/a/b","Elapsed":30}`, `no JSON`)
	e2e := write("e2e.json", `{"Action":"output","Package":"test/e2e","Test":"TestSlower/part","Output":"the reason\n"}`,
		`{"Action":"output","Package":"test/e2e","Test":"TestSlower","Output":"of the parent\n"}`,
		`{"Action":"fail","Package":"test/e2e","Test":"TestSlower/part","Elapsed":99.6}`,
		`{"Action":"fail","Package":"test/e2e","Test":"TestSlower","Elapsed":9}`,
		`{"Action":"skip","Package":"test/e2e","Test":"TestSkipped","Elapsed":200}`,
		`{"Action":"pass","Package":"test/e2e","Test":"TestFast","Elapsed":1}`)
	missing := filepath.Join(t.TempDir(), "none.json")
	tests, err := ended(existing([]string{unit, e2e, missing}, time.Now().Add(-time.Minute)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	steps := []step{{"verify", 12 * time.Second, 21 << 30, nil}, {"test", 61 * time.Second, 1 << 29, errors.New("wrong")}}
	table(&out, steps, 74*time.Second, slowest(tests, 2))
	explain(&out, tests)
	want := `
Where the time went:
     12 s  verify, 21.0 GiB of disk space free
     61 s  test (failed), 0.5 GiB of disk space free
     74 s  total

The slowest tests:
    100 s  test/e2e TestSlower/part
     20 s  a/b TestSlow

Failed: test/e2e TestSlower/part
the reason
`
	if out.String() != want {
		t.Errorf("got%swant%s", out.String(), want)
	}
	if old := existing([]string{unit}, time.Now().Add(time.Minute)); len(old) != 0 {
		t.Errorf("a report of an earlier run counts: %v", old)
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
