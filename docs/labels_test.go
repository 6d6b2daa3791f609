package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// The page on labels and annotations has a row for each key that the operator sets or reads, and
// for no other.
func TestLabelsAndAnnotations(t *testing.T) {
	isKey := func(name, value string) bool {
		return name != "" && strings.Contains(value, "/") && !strings.HasSuffix(value, "/")
	}
	want := []string{discoveryv1.LabelServiceName, discoveryv1.LabelManagedBy}
	want = append(want, literals(t, "internal/wellknown/wellknown.go", func(name, value string) bool {
		return isKey(name, value) && regexp.MustCompile(`^(Label|Annotation)`).MatchString(name)
	})...)
	for _, file := range []string{"pkg/storagemigration/controlplane.go", "pkg/storagemigration/situation.go"} {
		want = append(want, literals(t, file, func(name, value string) bool {
			return isKey(name, value) && strings.HasSuffix(name, "Annotation")
		})...)
	}

	var rows []string
	page := read(t, "docs/reference/labels-and-annotations.md")
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(page, -1) {
		rows = append(rows, row[1])
	}
	slices.Sort(want)
	slices.Sort(rows)
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("keys (-code +page):\n%s", diff)
	}
}
