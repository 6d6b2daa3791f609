//go:build bench

package bench

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// writeTable prints the results as a Markdown table, and writes it to the page.
func writeTable(t *testing.T, name string, results []result) {
	t.Helper()
	writePlace(t, name, table(results), results[0].short)
}

// writePlace prints a text. If BENCH_PAGE is the path of a page, it also replaces the text between
// the comments "bench NAME" and "end NAME" of that page. A page gets no results of short runs.
func writePlace(t *testing.T, name, text string, short bool) {
	t.Helper()
	fmt.Println(text)
	page := os.Getenv("BENCH_PAGE")
	if page == "" || short {
		return
	}
	before := must1(os.ReadFile(page))(t)
	place := regexp.MustCompile(`(?s)(<!-- bench ` + name + ` -->\n).*(<!-- end ` + name + ` -->)`)
	if !place.Match(before) {
		t.Fatalf("%s has no place for %q", page, name)
	}
	after := place.ReplaceAllStringFunc(string(before), func(found string) string {
		ends := place.FindStringSubmatch(found)
		return ends[1] + text + ends[2]
	})
	must(t, os.WriteFile(page, []byte(after), 0o600))
}

func table(results []result) string {
	var out strings.Builder
	out.WriteString("| figure |")
	for _, one := range results {
		fmt.Fprintf(&out, " %d replicas |", one.replicas)
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(results)) + "\n")
	for _, row := range []struct {
		name  string
		value func(result) string
	}{
		{"objects per second, operator", func(r result) string { return fmt.Sprintf("%.1f", float64(r.objects)/r.operator.Seconds()) }},
		{"objects per second, bare client", func(r result) string { return fmt.Sprintf("%.1f", float64(r.objects)/r.bare.Seconds()) }},
		{"processor time per object, both replicas", func(r result) string { return fmt.Sprintf("%.1f ms", milliseconds(r.processor)) }},
		{"processor time of the API server per object", func(r result) string { return fmt.Sprintf("%.1f ms", milliseconds(r.apiServer)) }},
		{"the same with the bare client", func(r result) string { return fmt.Sprintf("%.1f ms", milliseconds(r.bareServer)) }},
		{"writes of the operator per object", func(r result) string { return r.perObject() }},
	} {
		fmt.Fprintf(&out, "| %s |", row.name)
		for _, one := range results {
			fmt.Fprintf(&out, " %s |", row.value(one))
		}
		out.WriteString("\n")
	}
	return out.String()
}

// perObject lists the writes for one object by kind. It leaves out kinds that are written for fewer
// than one object in a hundred.
func (r *result) perObject() string {
	var out []string
	for _, key := range slices.SortedFunc(maps.Keys(r.written), func(a, b request) int { return strings.Compare(a.String(), b.String()) }) {
		if each := float64(r.written[key]) / float64(r.objects); each >= 0.01 {
			out = append(out, fmt.Sprintf("%.3g %s", each, key))
		}
	}
	return strings.Join(out, "<br>")
}
