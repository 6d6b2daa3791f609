package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// module is the prefix of the packages of this repository.
const module = "github.com/example/nginx-operator/"

// record runs the part unless it has a row that counts, and saves its row. With onlyCheck, a
// missing row is an error.
func (p part) record(onlyCheck bool) error {
	want, err := p.now()
	rows, errRows := load(rowsFile)
	if err := errors.Join(err, errRows); err != nil {
		return err
	}
	errRow := want.in(rows)
	if errRow == nil {
		return nil
	}
	if onlyCheck {
		return fmt.Errorf("%w; run make nightly PART=%s, and commit the row", errRow, p.name)
	}
	fmt.Printf("nightly: part %s starts: %v\n", p.name, errRow)
	began := time.Now()
	r := row{Part: p.name, Versions: map[string][]string{}, Tests: map[string][]string{}, Skipped: map[string]string{}}
	for _, s := range p.steps {
		if r.Tests[s.make], err = s.run(&r); err != nil {
			return fmt.Errorf("part %s, make %s: %w", p.name, s.make, err)
		}
	}
	r.Minutes, r.Date = int(time.Since(began)/time.Minute)+1, time.Now().UTC().Format(time.RFC3339)
	r.Commit, r.Hash = want.Commit, want.Hash
	after, err := p.now()
	if err == nil && after.Commit != r.Commit {
		err = fmt.Errorf("part %s began at commit %s and ended at %s", p.name, r.Commit, after.Commit)
	}
	if err := errors.Join(err, want.in([]row{r})); err != nil {
		return err
	}
	return save(append(rows, r))
}

// run calls make and adds the reports that it leaves in dist to the row. It returns the tests that
// ran, without subtests.
func (s step) run(r *row) ([]string, error) {
	const reports = "dist/*.json"
	files, err := filepath.Glob(reports)
	for _, old := range files {
		err = errors.Join(err, os.Remove(old))
	}
	cmd := exec.Command("make", strings.Fields(s.make)...) //nolint:gosec // from the table
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := errors.Join(err, cmd.Run()); err != nil || s.packages == nil && s.e2e == "" {
		r.Passed++
		return []string{s.make}, err
	}
	var ran []string
	before := r.Passed
	files, err = filepath.Glob(reports)
	for _, name := range files {
		text, errRead := os.ReadFile(name) //nolint:gosec // a report
		tests, errReport := r.add(text)
		ran, err = append(ran, tests...), errors.Join(err, errRead, errReport)
	}
	if err == nil && r.Passed == before {
		err = errors.New("no test passed")
	}
	slices.Sort(ran)
	return ran, err
}

var (
	versionLine = regexp.MustCompile(`\bMATRIX (\S.*) v?(\d\S*)\s*$`)
	logLine     = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)`)
)

// add adds a report in the format of `go test -json` to the row, and returns the tests that passed
// or were skipped, without subtests. A failed test is an error. The reason for a skipped test is
// the last line that it logged. A test logs `MATRIX COMPONENT VERSION` for other software that it
// uses.
func (r *row) add(report []byte) (ran []string, err error) {
	logged := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(report)); ; {
		var event struct{ Action, Package, Test, Output string }
		if err := decoder.Decode(&event); errors.Is(err, io.EOF) {
			return ran, nil
		} else if err != nil {
			return nil, fmt.Errorf("failed to decode a report: %w", err)
		}
		name := strings.TrimPrefix(event.Package, module) + " " + event.Test
		if match := logLine.FindStringSubmatch(event.Output); match != nil {
			logged[name] = match[1]
		}
		if match := versionLine.FindStringSubmatch(event.Output); match != nil && !slices.Contains(r.Versions[match[1]], match[2]) {
			r.Versions[match[1]] = slices.Sorted(slices.Values(append(r.Versions[match[1]], match[2])))
		}
		switch {
		case strings.HasSuffix(event.Action, "fail"):
			return nil, fmt.Errorf("%s failed", name)
		case event.Test == "" || event.Action != "pass" && event.Action != "skip":
			continue
		case event.Action == "pass":
			r.Passed++
		default:
			r.Skipped[name] = logged[name]
		}
		if !strings.Contains(event.Test, "/") {
			ran = append(ran, name)
		}
	}
}
