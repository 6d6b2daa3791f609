package docs_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// cells returns the cells of a row of a generated table of docs/performance.md, without its first
// one.
func cells(t *testing.T, page, table, first string) []string {
	t.Helper()
	_, rows, _ := strings.Cut(page, "<!-- bench "+table+" -->")
	rows, _, _ = strings.Cut(rows, "<!-- end "+table+" -->")
	row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(first) + ` \| (.+) \|$`).FindStringSubmatch(rows)
	if row == nil {
		t.Fatalf("the table %s has no row %q", table, first)
	}
	return strings.Split(row[1], " | ")
}

// The plan for many instances repeats the measured numbers, which targets write to the tables.
func TestPlanHasMeasuredNumbers(t *testing.T) {
	page := read(t, "docs/performance.md")
	_, plan, _ := strings.Cut(page, "\n## Plan\n")
	plan, _, _ = strings.Cut(oneLine(plan), " ## ")

	const leader, among = 3, 2 // columns of the table of the growth
	for instances, form := range map[string]string{
		"100": "| 10 | %s (measured with 100) |", "1000": "| 1,000 | %s |", "10000": "| 10,000 | %s |",
	} {
		if want := fmt.Sprintf(form, cells(t, page, "growth", instances)[leader]); !strings.Contains(plan, want) {
			t.Errorf("the plan does not have %q", want)
		}
	}
	wanted := []string{"one more cost " + cells(t, page, "growth", "10000")[among] + " times as much"}
	for row, form := range map[string]string{
		"processor time of the API server per object": "costs the API server %s of processor time",
		"the same with the bare client":               "without the operator costs it %s.",
		"processor time per object, both replicas":    "costs both replicas of the operator %s together",
	} {
		wanted = append(wanted, fmt.Sprintf(form, cells(t, page, "cluster-create", row)[1]))
	}
	wanted = append(wanted, "with 0 replicas "+cells(t, page, "cluster-create", "processor time per object, both replicas")[0])
	for _, want := range wanted {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan does not say %q", want)
		}
	}
}
