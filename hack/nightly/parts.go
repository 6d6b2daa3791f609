package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
)

// part is a set of steps that run and are recorded together. docs/development.md says what a part
// runs.
type part struct {
	name  string
	steps []step
	// listed parts have a share in `make check` if a path of list.txt changed since their last row.
	listed bool
	// weekly parts belong to `make weekly`. A release does not need their rows.
	weekly bool
}

// step is a call of make. Targets that run tests write reports to dist.
type step struct {
	make string
	// files are git's patterns of the files with the tests of the reports. only selects one of them.
	files []string
	only  string
	// e2e is a part of test/e2e, and replaces files. A step with neither has no report.
	e2e string
}

func e2e(part string) step { return step{make: "nightly-e2e E2E_PART=" + part, e2e: part} }

const integration = "test/integration/*_test.go"

var parts = []part{
	{name: "apiserver", listed: true, steps: []step{
		{make: "apiserver-oldest", files: []string{"examples/" + integration, integration, ":!*/matrix_*_test.go"}},
		{make: "apiserver-newest", files: []string{"examples/" + integration, integration}},
	}},
	{name: "simulation", steps: []step{
		{make: "simulate DURATION=20m", files: []string{"test/simulation/*_test.go"}, only: "TestSeeds"},
		{make: "simulate-rows", files: []string{"test/simulation/rows/*_test.go"}, only: "TestSeedsFindEachRow"},
	}},
	{name: "upgrades", steps: []step{e2e("upgrades")}},
	{name: "subscription", steps: []step{e2e("subscription"), {make: "start-arm64"}}},
	{name: "journeys", steps: []step{e2e("journeys"), {make: "first-command"}}},
	{name: "examples", listed: true, steps: []step{e2e("examples")}},
	{name: "olm-v1", steps: []step{e2e("olm-v1")}},
	{name: "oldest-cluster", steps: []step{e2e("oldest-cluster")}},
	{name: "hostile", steps: []step{{make: "bench-hostile", files: []string{"test/bench/*_test.go"}, only: "TestHostile"}}},
	{name: "seeds", weekly: true, steps: []step{
		{make: "simulate DURATION=1h", files: []string{"test/simulation/*_test.go"}, only: "TestSeeds"},
	}},
	{name: "growth", weekly: true, steps: []step{
		{make: "bench-growth BENCH_PAGE=", files: []string{"test/bench/*_test.go"}, only: "TestGrowth"},
	}},
}

// want returns the tests that each step must run, with their packages.
func (p part) want() (map[string][]string, error) {
	out := map[string][]string{}
	for _, s := range p.steps {
		tests, err := s.want()
		if len(tests) == 0 {
			err = errors.Join(err, fmt.Errorf("part %s, make %s: found none of its tests", p.name, s.make))
		}
		if err != nil {
			return nil, err
		}
		out[s.make] = tests
	}
	return out, nil
}

var testName = regexp.MustCompile(`\bTest\w+`)

func (s step) want() (out []string, err error) {
	if s.e2e != "" {
		// The table of test/e2e has an entry for each part, and a test compares it with the tests.
		table, err := os.ReadFile("test/e2e/parts_test.go")
		entry := regexp.MustCompile(`\n\t"` + s.e2e + `": +\{[^}]*\}`).FindString(string(table))
		for _, name := range testName.FindAllString(entry, -1) {
			out = append(out, "test/e2e "+name)
		}
		return out, err
	}
	if s.files == nil {
		return []string{s.make}, nil
	}
	found, err := git(append([]string{"grep", "-E", `^func Test\w+\(\w+ \*testing\.T\)`, "--"}, s.files...)...)
	for line := range strings.Lines(found) {
		file, function, _ := strings.Cut(line, ":")
		if name := testName.FindString(function); s.only == "" || s.only == name {
			out = append(out, path.Dir(file)+" "+name)
		}
	}
	return out, err
}
