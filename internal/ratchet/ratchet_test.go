package ratchet

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func refusal(path *field.Path, value string) Refusal {
	return Refusal{Err: field.Invalid(path, value, "a rule"), Value: value}
}

func TestSplit(t *testing.T) {
	paths := field.NewPath("spec", "paths")
	for name, test := range map[string]struct {
		before, now   []Refusal
		added, stored int
	}{
		"nothing":           {},
		"a new object":      {now: []Refusal{refusal(paths.Index(0), "a")}, added: 1},
		"as stored":         {before: []Refusal{refusal(paths.Index(0), "a")}, now: []Refusal{refusal(paths.Index(0), "a")}, stored: 1},
		"moved in its list": {before: []Refusal{refusal(paths.Index(3), "a")}, now: []Refusal{refusal(paths.Index(0), "a")}, stored: 1},
		"corrected":         {before: []Refusal{refusal(paths.Index(0), "a")}},
		"another value":     {before: []Refusal{refusal(paths.Index(0), "a")}, now: []Refusal{refusal(paths.Index(0), "b")}, added: 1},
		"in another field": {
			before: []Refusal{refusal(paths.Index(0), "a")}, now: []Refusal{refusal(field.NewPath("spec", "host"), "a")}, added: 1,
		},
		"the stored one, and one": {
			before: []Refusal{refusal(paths.Index(0), "a")},
			now:    []Refusal{refusal(paths.Index(0), "b"), refusal(paths.Index(1), "a")}, added: 1, stored: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if added, stored := Split(test.before, test.now); len(added) != test.added || len(stored) != test.stored {
				t.Errorf("%d are new and %d stored, want %d and %d: %v %v", len(added), len(stored), test.added, test.stored, added, stored)
			}
		})
	}
}
