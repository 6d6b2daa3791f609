package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const integration = "github.com/example/nginx-operator/test/integration"

// entry returns an entry of a report.
func entry(action, pkg, test, output string) string {
	return fmt.Sprintf(`{"Time":"2026-11-25T20:00:00Z","Action":%q,"Package":%q,"Test":%q,"Output":%q}`+"\n", action, pkg, test, output)
}

var passed = entry("output", integration, "", "MATRIX Kubernetes v1.30.0\n") +
	entry("pass", integration, "TestA/one", "") +
	entry("pass", integration, "TestA", "") +
	entry("skip", integration, "TestB", "") +
	entry("pass", integration, "", "")

// A version that a test logs covers this test only.
var ofTests = entry("output", "test/e2e", "TestS/versions/sid", "    x_test.go:1: MATRIX nginx 1.30.6\n") +
	entry("output", "test/e2e", "TestS/versions/trixie", "    x_test.go:1: MATRIX nginx 1.26.3\n") +
	entry("pass", "test/e2e", "TestS/versions/sid", "") +
	entry("pass", "test/e2e", "TestS/versions/trixie", "") +
	entry("pass", "test/e2e", "TestS", "") +
	entry("pass", "test/e2e", "", "")

func TestResults(t *testing.T) {
	var added []result
	for _, report := range []string{passed, ofTests} {
		found, err := resultsOf(strings.NewReader(report))
		if err != nil {
			t.Fatal(err)
		}
		added = append(added, found...)
	}
	old := []result{{Component: "nginx", Version: "1.31.0"}, {Component: "other", Version: "2"}}
	const date = "2026-11-25"
	want := []result{
		{Component: "Kubernetes", Version: "1.30.0", Tests: []string{"test/integration"}, Passed: 2, Skipped: []string{"TestB"}, Date: date},
		{Component: "nginx", Version: "1.26.3", Tests: []string{"test/e2e TestS/versions/trixie"}, Passed: 1, Date: date},
		{Component: "nginx", Version: "1.30.6", Tests: []string{"test/e2e TestS/versions/sid"}, Passed: 1, Date: date},
		{Component: "other", Version: "2"},
	}
	merged := merge(old, added)
	if diff := cmp.Diff(want, merged); diff != "" {
		t.Error(diff)
	}
	const row = "| nginx | 1.26.3 | `test/e2e TestS/versions/trixie` | 1 | none | 2026-11-25 |\n"
	if page := table(merged); !strings.Contains(page, row) || !strings.Contains(table(nil), "No run") {
		t.Errorf("the table does not have the row %s:\n%s", row, page)
	}
}

func TestOnlyCompletePassedRunsAreRecorded(t *testing.T) {
	version, end := entry("output", integration, "", "MATRIX Kubernetes v1.30.0\n"), entry("pass", integration, "", "")
	for name, report := range map[string]string{
		"failed":         strings.Replace(passed, `"Action":"pass"`, `"Action":"fail"`, 1),
		"interrupted":    strings.TrimSuffix(passed, end),
		"cut":            passed[:len(passed)-10],
		"no version":     strings.Replace(passed, "MATRIX", "FIGURE", 1),
		"not a version":  strings.Replace(passed, "v1.30.0", "1.x", 1),
		"nothing passed": version + entry("run", integration, "TestA", "") + end,
		"empty":          "",
	} {
		if found, err := resultsOf(strings.NewReader(report)); err == nil {
			t.Errorf("%s: recorded %v", name, found)
		}
	}
}
