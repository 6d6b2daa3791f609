package wellknown

import (
	"strings"
	"testing"
)

func TestImageTag(t *testing.T) {
	for image, want := range map[string]string{
		"nginx":                      "",
		"nginx:1.28.0":               "1.28.0",
		"registry:5000/nginx":        "",
		"registry:5000/nginx:1.28.0": "1.28.0",
		"nginx@sha256:" + strings.Repeat("a", 64):        "",
		"nginx:1.28.0@sha256:" + strings.Repeat("a", 64): "1.28.0",
	} {
		if got := imageTag(image); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}

// TestChildLabels verifies that a tag that is not a valid label value, for example because it is
// too long, results in no version label. The API server would reject the object.
func TestChildLabels(t *testing.T) {
	if got := ChildLabels("web", "nginx:1.28.0")[LabelVersion]; got != "1.28.0" {
		t.Errorf("version %q", got)
	}
	for _, image := range []string{"nginx", "nginx:" + strings.Repeat("x", 64), "nginx:1_"} {
		if got, found := ChildLabels("web", image)[LabelVersion]; found {
			t.Errorf("%s: version %q", image, got)
		}
	}
}

// TestSelectorNeverChanges verifies the exact selector. A Deployment's selector is immutable, so
// this set must never change.
func TestSelectorNeverChanges(t *testing.T) {
	got := Selector("web")
	want := map[string]string{
		"app.kubernetes.io/name":       "nginx",
		"app.kubernetes.io/instance":   "web",
		"app.kubernetes.io/managed-by": "nginx-operator",
	}
	if len(got) != len(want) {
		t.Errorf("selector %v", got)
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("selector %v", got)
		}
	}
}
