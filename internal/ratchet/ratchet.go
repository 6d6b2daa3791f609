// Package ratchet exempts stored values from new rules. A value that an older release accepted
// stays in effect, and the status reports it (docs/adr/0041-new-rules-ratchet.md).
package ratchet

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Refusal is a value of a spec that a new rule rejects.
type Refusal struct {
	// Err has the field, the rule, and the remedy.
	Err *field.Error
	// Value identifies the value. It is equal for two refusals of the same value.
	Value string
}

var index = regexp.MustCompile(`\[[0-9]+\]`)

// Key identifies a refusal without its index: an element that moves in its list is not new.
func (r Refusal) Key() string {
	return index.ReplaceAllString(r.Err.Field, "[]") + "\x00" + string(r.Err.Type) + "\x00" + r.Value
}

// Split returns the refusals that are new in a spec, and those that the spec before has as well.
func Split(before, now []Refusal) (added, stored field.ErrorList) {
	known := sets.New[string]()
	for _, refusal := range before {
		known.Insert(refusal.Key())
	}

	for _, refusal := range now {
		if known.Has(refusal.Key()) {
			stored = append(stored, refusal.Err)
		} else {
			added = append(added, refusal.Err)
		}
	}

	return added, stored
}
