package wellknown

import (
	"maps"
	"strings"
	"testing"
)

// TestChildLabels verifies the version label. A tag that is not a valid label value, for example
// because it is too long, results in none, because the API server would reject the object.
func TestChildLabels(t *testing.T) {
	for image, want := range map[string]string{
		"nginx":                      "",
		"nginx:1.28.0":               "1.28.0",
		"registry:5000/nginx":        "",
		"registry:5000/nginx:1.28.0": "1.28.0",
		"nginx@sha256:" + strings.Repeat("a", 64):        "",
		"nginx:1.28.0@sha256:" + strings.Repeat("a", 64): "1.28.0",
		"nginx:" + strings.Repeat("x", 64):               "",
		"nginx:1_":                                       "",
	} {
		if got, exists := ChildLabels("web", image)[LabelVersion]; got != want || exists != (want != "") {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}

// TestSelectorNeverChanges verifies the exact selector. A Deployment's selector is immutable, so
// this set must never change.
func TestSelectorNeverChanges(t *testing.T) {
	if got := Selector("web"); !maps.Equal(got, map[string]string{
		"app.kubernetes.io/name":       "nginx",
		"app.kubernetes.io/instance":   "web",
		"app.kubernetes.io/managed-by": "nginx-operator",
	}) {
		t.Errorf("selector %v", got)
	}
}
