package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestIncoming verifies which upgrades lead to a release: replaces, skips, and skipRange of all
// channels.
func TestIncoming(t *testing.T) {
	content, err := parseTemplate(`
schema: olm.template.basic
entries:
- schema: olm.channel
  name: candidate
  entries:
  - name: nginx-operator.v1.3.0
    replaces: nginx-operator.v1.2.0
    skips: [nginx-operator.v1.2.1]
    skipRange: ">=1.1.0 <1.3.0"
  - name: nginx-operator.v1.4.0
    replaces: nginx-operator.v1.3.0
- schema: olm.channel
  name: stable
  entries:
  - name: nginx-operator.v1.3.0
    replaces: nginx-operator.v0.9.0
- schema: olm.deprecations
  entries: []
`)
	must(t, err)
	older := []string{"0.9.0", "1.0.0", "1.1.0", "1.2.0", "1.2.1"}
	got, err := incoming(content, "1.3.0", older)
	must(t, err)
	want := []edge{{"1.2.0", "1.3.0"}, {"1.2.1", "1.3.0"}, {"1.1.0", "1.3.0"}, {"0.9.0", "1.3.0"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(edge{})); diff != "" {
		t.Error(diff)
	}
	if got, err := incoming(content, "1.5.0", older); err == nil {
		t.Errorf("upgrades %v to a release that is not in the template", got)
	}
}

// TestFailuresIn verifies that the results of both versions of crdify are read.
func TestFailuresIn(t *testing.T) {
	result := map[string]any{"name": "enum", "errors": []any{"a", "b"}}
	passed := map[string]any{"name": "type"}
	for name, document := range map[string]any{
		"oldest": map[string]any{"sameVersionValidation": map[string]any{"v1": map[string]any{"^.spec": []any{passed, result}}}},
		"newest": map[string]any{"sameVersionValidation": []any{
			map[string]any{"version": "v1", "propertyComparisons": []any{
				map[string]any{"property": "^.spec", "comparisonResults": []any{result}},
			}},
		}},
	} {
		want := []preflightFailure{{"enum", "a"}, {"enum", "b"}}
		if diff := cmp.Diff(want, failuresIn(document), cmp.AllowUnexported(preflightFailure{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
