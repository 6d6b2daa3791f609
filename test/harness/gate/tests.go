package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// test is a test that passed or failed. If it failed, last has the last lines that it printed.
type test struct {
	pkg, test string
	failed    bool
	elapsed   time.Duration
	last      []string
}

// name returns the last two elements of the package path, and the name of the test.
func (t test) name() string {
	return path.Join(path.Base(path.Dir(t.pkg)), path.Base(t.pkg)) + " " + t.test
}

// lastLines is the number of lines to retain for a failed test. lineLength is the maximum length of
// a line in bytes.
const (
	lastLines  = 12
	lineLength = 600
)

// slowest returns the tests with the longest durations. It omits subtests of subtests: their names
// are long, and the durations of their parents include them.
func slowest(tests []test, count int) []test {
	out := slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return strings.Count(t.test, "/") > 1 })
	slices.SortStableFunc(out, func(a, b test) int { return cmp.Compare(b.elapsed, a.elapsed) })
	return out[:min(count, len(out))]
}

// ended returns the tests in the reports that passed or failed, in the order of their results.
func ended(files []string) ([]test, error) {
	var out []test
	var errs []error
	for _, file := range files {
		tests, err := read(file)
		out, errs = append(out, tests...), append(errs, err)
	}
	return out, errors.Join(errs...)
}

func read(file string) ([]test, error) {
	report, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read what the tests took: %w", err)
	}
	defer func() { _ = report.Close() }()
	type key struct{ Package, Test string }
	printed := map[key][]string{}
	var out []test
	lines := bufio.NewScanner(report)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		// Same format as `go tool test2json`.
		var event struct {
			key
			Action, Output string
			Elapsed        float64
		}
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.Test == "" {
			continue
		}
		switch event.Action {
		case "output":
			kept := slices.Concat(printed[event.key], []string{shortened(event.Output)})
			printed[event.key] = kept[max(0, len(kept)-lastLines):]
		case "pass", "fail":
			one := test{event.Package, event.Test, event.Action == "fail", time.Duration(event.Elapsed * float64(time.Second)), nil}
			if one.failed {
				one.last = printed[event.key]
			}
			out = append(out, one)
			delete(printed, event.key)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("failed to read %s: %w", file, err)
	}
	return out, nil
}

// shortened truncates a line to lineLength bytes.
func shortened(line string) string {
	if len(line) <= lineLength {
		return line
	}
	return line[:lineLength] + "...\n"
}
