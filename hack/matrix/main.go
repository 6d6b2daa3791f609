// Command matrix keeps the results of `make matrix`: the versions of other software with which the
// tests passed.
//
//	matrix record REPORT...   add the results of reports to docs/reference/matrix.json
//	matrix page               write the table of docs/support.md
//
// A report is a file that gotestsum writes with --jsonfile. A test logs a line `MATRIX COMPONENT
// VERSION` for the software that it runs with. Outside a test, the line covers all tests of the
// report. Only a run without a failure is recorded. New results of a component replace all of its
// earlier results.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

const (
	resultsFile = "docs/reference/matrix.json"
	pageFile    = "docs/support.md"
	begin       = "<!-- `make generate` writes the tested versions of docs/reference/matrix.json from here -->\n"
	end         = "<!-- to here -->\n"
)

// result is a version of a component with which tests passed.
type result struct {
	Component string `json:"component"`
	Version   string `json:"version"`
	// Tests are the packages that ran, or the package and the name of a single test.
	Tests []string `json:"tests"`
	// Passed is the number of tests that passed, including subtests.
	Passed int `json:"passed"`
	// Skipped are the tests that skipped themselves.
	Skipped []string `json:"skipped,omitempty"`
	// Date is the day of the run in UTC.
	Date string `json:"date"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	results, err := load()
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1 && args[0] == "page":
		return writePage(results)
	case len(args) > 1 && args[0] == "record":
		var added []result
		for _, name := range args[1:] {
			found, err := readReport(name)
			if err != nil {
				return fmt.Errorf("failed to record %s: %w", name, err)
			}
			added = append(added, found...)
		}
		return save(merge(results, added))
	}
	return errors.New("usage: matrix record REPORT... or matrix page")
}

func load() ([]result, error) {
	raw, err := os.ReadFile(resultsFile)
	if err != nil {
		return nil, fmt.Errorf("failed to read the results: %w", err)
	}
	var results []result
	if err := json.Unmarshal(raw, &results); err != nil {
		return nil, fmt.Errorf("failed to decode %s: %w", resultsFile, err)
	}
	return results, nil
}

func save(results []result) error {
	raw, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return fmt.Errorf("failed to encode the results: %w", err)
	}
	return os.WriteFile(resultsFile, append(raw, '\n'), 0o600) //nolint:gosec // a constant name
}

// merge replaces the results of each added component and sorts by component and version.
func merge(results, added []result) []result {
	results = slices.DeleteFunc(slices.Clone(results), func(old result) bool {
		return slices.ContainsFunc(added, func(r result) bool { return r.Component == old.Component })
	})
	results = append(results, added...)
	slices.SortStableFunc(results, func(a, b result) int {
		if order := strings.Compare(strings.ToLower(a.Component), strings.ToLower(b.Component)); order != 0 {
			return order
		}
		return compareVersions(a.Version, b.Version)
	})
	return results
}

// compareVersions compares two versions that readReport has accepted.
func compareVersions(a, b string) int {
	order, err := version.MustParseGeneric(a).Compare(b)
	if err != nil {
		return strings.Compare(a, b)
	}
	return order
}

func writePage(results []result) error {
	text, err := os.ReadFile(pageFile)
	if err != nil {
		return fmt.Errorf("failed to read the page: %w", err)
	}
	before, rest, hasBegin := strings.Cut(string(text), begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		return fmt.Errorf("%s does not have the lines %q and %q in this order", pageFile, begin, end)
	}
	return os.WriteFile(pageFile, []byte(before+begin+"\n"+table(results)+"\n"+end+after), 0o600) //nolint:gosec // a constant name
}

// table returns the results as a Markdown table.
func table(results []result) string {
	if len(results) == 0 {
		return "No run is recorded yet.\n"
	}
	out := "| component | version | tests | passed | skipped | date |\n|---|---|---|---|---|---|\n"
	for _, r := range results {
		skipped := "none"
		if len(r.Skipped) > 0 {
			skipped = "`" + strings.Join(r.Skipped, "`, `") + "`"
		}
		out += fmt.Sprintf("| %s | %s | `%s` | %d | %s | %s |\n",
			r.Component, r.Version, strings.Join(r.Tests, "`, `"), r.Passed, skipped, r.Date)
	}
	return out
}
