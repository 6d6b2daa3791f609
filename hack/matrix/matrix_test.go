package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const passed = `
{"Time":"2026-11-25T20:00:00Z","Action":"output","Package":"example.com/integration","Output":"MATRIX Kubernetes v1.30.0\n"}
{"Time":"2026-11-25T20:00:01Z","Action":"pass","Package":"example.com/integration","Test":"TestA/one"}
{"Time":"2026-11-25T20:00:01Z","Action":"pass","Package":"example.com/integration","Test":"TestA"}
{"Time":"2026-11-25T20:00:02Z","Action":"skip","Package":"example.com/integration","Test":"TestB"}
{"Time":"2026-11-25T20:00:02Z","Action":"pass","Package":"example.com/integration"}
`

// A version that a test logs covers this test only.
const ofTests = `
{"Time":"2026-11-25T20:00:00Z","Action":"output","Package":"test/e2e","Test":"TestS/versions/sid","Output":"    x_test.go:1: MATRIX nginx 1.30.6\n"}
{"Time":"2026-11-25T20:00:00Z","Action":"output","Package":"test/e2e","Test":"TestS/versions/trixie","Output":"    x_test.go:1: MATRIX nginx 1.26.3\n"}
{"Time":"2026-11-25T20:00:01Z","Action":"pass","Package":"test/e2e","Test":"TestS/versions/sid"}
{"Time":"2026-11-25T20:00:01Z","Action":"pass","Package":"test/e2e","Test":"TestS/versions/trixie"}
{"Time":"2026-11-25T20:00:01Z","Action":"pass","Package":"test/e2e","Test":"TestS"}
{"Time":"2026-11-25T20:00:02Z","Action":"pass","Package":"test/e2e"}
`

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
	want := []result{
		{Component: "Kubernetes", Version: "1.30.0", Tests: []string{"example.com/integration"}, Passed: 2, Skipped: []string{"TestB"}, Date: "2026-11-25"},
		{Component: "nginx", Version: "1.26.3", Tests: []string{"test/e2e TestS/versions/trixie"}, Passed: 1, Date: "2026-11-25"},
		{Component: "nginx", Version: "1.30.6", Tests: []string{"test/e2e TestS/versions/sid"}, Passed: 1, Date: "2026-11-25"},
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
	last := strings.LastIndex(strings.TrimRight(passed, "\n"), "\n") + 1
	for name, report := range map[string]string{
		"failed":         strings.Replace(passed, `"Action":"pass"`, `"Action":"fail"`, 1),
		"interrupted":    passed[:last],
		"cut":            passed[:len(passed)-10],
		"no version":     strings.Replace(passed, "MATRIX", "FIGURE", 1),
		"nothing passed": strings.ReplaceAll(passed, `"pass","Package":"example.com/integration","Test"`, `"run","Test"`),
		"empty":          "",
	} {
		if found, err := resultsOf(strings.NewReader(report)); err == nil {
			t.Errorf("%s: recorded %v", name, found)
		}
	}
}
