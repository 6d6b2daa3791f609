package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// module is the prefix of the packages of this repository.
const module = "github.com/example/nginx-operator/"

// event is an entry of a report, as `go test -json` writes it.
type event struct {
	Time                          time.Time
	Action, Package, Test, Output string
}

// scope is a component with its version, and the test that logged it, or "" for the whole report.
type scope struct{ component, version, pkg, test string }

// covers reports whether an event belongs to a test of the scope.
func (s scope) covers(e event) bool {
	return e.Test != "" && (s.test == "" || s.pkg == e.Package && (e.Test == s.test || strings.HasPrefix(e.Test, s.test+"/")))
}

var line = regexp.MustCompile(`\bMATRIX (\S.*) v?(\d\S*)\s*$`)

func readReport(name string) ([]result, error) {
	file, err := os.Open(name) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return resultsOf(file)
}

// resultsOf returns the results of a report. A failed or interrupted run, a report that names no
// component, and a component without a passed test are errors.
func resultsOf(report io.Reader) ([]result, error) {
	var events []event
	scopes, ended := map[scope]bool{}, map[string]bool{}
	for decoder := json.NewDecoder(report); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("failed to decode the report: %w", err)
		}
		e.Package = strings.TrimPrefix(e.Package, module)
		if e.Action == "fail" || e.Action == "build-fail" {
			return nil, fmt.Errorf("%s %s failed: only a run without failures is recorded", e.Package, e.Test)
		}
		if match := line.FindStringSubmatch(e.Output); match != nil {
			if _, err := version.ParseGeneric(match[2]); err != nil {
				return nil, fmt.Errorf("%s %s logs %q: %w", e.Package, e.Test, match[0], err)
			}
			found := scope{component: match[1], version: match[2], pkg: e.Package, test: e.Test}
			if e.Test == "" {
				found.pkg = ""
			}
			scopes[found] = true
		}
		if e.Package != "" {
			ended[e.Package] = ended[e.Package] || e.Test == "" && (e.Action == "pass" || e.Action == "skip")
		}
		events = append(events, e)
	}
	for pkg, ok := range ended {
		if !ok {
			return nil, fmt.Errorf("%s did not end: only a complete run is recorded", pkg)
		}
	}
	if len(scopes) == 0 {
		return nil, errors.New("no test logs `MATRIX COMPONENT VERSION`")
	}
	var results []result
	for s := range scopes {
		r := s.result(events)
		if r.Passed == 0 {
			return nil, fmt.Errorf("no test passed with %s %s", s.component, s.version)
		}
		results = append(results, r)
	}
	return results, nil
}

// result counts the tests of the scope.
func (s scope) result(events []event) result {
	r := result{Component: s.component, Version: s.version}
	tests := map[string]bool{}
	for _, e := range events {
		if !s.covers(e) {
			continue
		}
		switch e.Action {
		case "pass":
			r.Passed++
		case "skip":
			r.Skipped = append(r.Skipped, e.Test)
		default:
			continue
		}
		tests[strings.TrimSpace(e.Package+" "+s.test)] = true
		r.Date = e.Time.UTC().Format(time.DateOnly)
	}
	slices.Sort(r.Skipped)
	r.Tests = slices.Sorted(maps.Keys(tests))
	return r
}
