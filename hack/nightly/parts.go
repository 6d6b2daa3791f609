package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// part is a set of steps that run and are recorded together. docs/development/nightly.md says what a
// part runs.
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
	// packages have the tests of the reports, with a build tag. only selects one of the tests.
	packages  []string
	tag, only string
	// e2e is a part of test/e2e, and replaces packages. A step with neither has no report.
	e2e string
}

func e2e(part string) step { return step{make: "nightly-e2e E2E_PART=" + part, e2e: part} }

// migration measures the storage migration of 50,000 objects by the control plane or by the
// operator.
func migration(by string) step {
	return step{
		make:     "bench-migration BENCH_PAGE= BENCH_OBJECTS=50000 BY=" + by,
		packages: []string{"./test/bench"}, tag: "bench", only: "TestStorageMigration",
	}
}

var onAPIServers = []string{"./test/integration/...", "./examples/test/integration"}

var parts = []part{
	{name: "apiserver", listed: true, steps: []step{
		{make: "apiserver-oldest", packages: onAPIServers},
		{make: "apiserver-newest", packages: onAPIServers, tag: "matrix"},
	}},
	{name: "simulation", steps: []step{
		{make: "simulate DURATION=20m", packages: []string{"./test/simulation"}, only: "TestSeeds"},
		{make: "simulate-rows", packages: []string{"./test/simulation/rows"}, tag: "rows", only: "TestSeedsFindEachRow"},
	}},
	{name: "upgrades", steps: []step{e2e("upgrades")}},
	{name: "subscription", steps: []step{e2e("subscription"), {make: "start-arm64"}}},
	{name: "journeys", steps: []step{e2e("journeys"), {make: "first-command"}}},
	{name: "examples", listed: true, steps: []step{e2e("examples")}},
	{name: "olm-v1", steps: []step{e2e("olm-v1")}},
	{name: "oldest-cluster", steps: []step{e2e("oldest-cluster")}},
	{name: "hostile", steps: []step{{make: "bench-hostile", packages: []string{"./test/bench"}, tag: "bench", only: "TestHostile"}}},
	{name: "seeds", weekly: true, steps: []step{
		{make: "simulate DURATION=1h", packages: []string{"./test/simulation"}, only: "TestSeeds"},
	}},
	{name: "mutants", weekly: true, steps: []step{
		{make: "simulate-mutants", packages: []string{"./test/simulation/rows"}, tag: "rows", only: "TestSeedsFindDrawnMutants"},
	}},
	{name: "growth", weekly: true, steps: []step{
		{make: "bench-growth BENCH_PAGE=", packages: []string{"./test/bench"}, tag: "bench", only: "TestGrowth"},
	}},
	{name: "migration-control-plane", weekly: true, steps: []step{migration("control-plane")}},
	{name: "migration-operator", weekly: true, steps: []step{migration("operator")}},
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

var (
	testName     = regexp.MustCompile(`\bTest\w+`)
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)
)

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
	if s.packages == nil {
		return []string{s.make}, nil
	}
	const format = `{{range .TestGoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`
	files, err := output("go", append([]string{"list", "-tags=" + s.tag, "-f", format}, s.packages...)...)
	here, errHere := os.Getwd()
	err = errors.Join(err, errHere)
	for file := range strings.FieldsSeq(files) {
		text, errRead := os.ReadFile(file) //nolint:gosec // a test of this repository
		dir, errRel := filepath.Rel(here, filepath.Dir(file))
		err = errors.Join(err, errRead, errRel)
		for _, match := range testFunction.FindAllStringSubmatch(string(text), -1) {
			if s.only == "" || s.only == match[1] {
				out = append(out, filepath.ToSlash(dir)+" "+match[1])
			}
		}
	}
	return out, err
}
