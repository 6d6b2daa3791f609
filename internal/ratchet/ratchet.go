// Package ratchet exempts stored values from new rules. A new rule rejects a value in a new write.
// If an older release accepted the same value, it stays in effect, and the status reports it. For
// the reasons, see docs/adr/0041-new-rules-ratchet.md.
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

// index is the index of an element in the path of a field.
var index = regexp.MustCompile(`\[[0-9]+\]`)

// Key returns the identity of a refusal. It has no index: an element that moves in its list is not
// new.
func (r Refusal) Key() string {
	return index.ReplaceAllString(r.Err.Field, "[]") + "\x00" + string(r.Err.Type) + "\x00" + r.Value
}

// Split returns the refusals that are new in a spec, and those that the spec before has as well.
func Split(before, now []Refusal) (added, stored field.ErrorList) {
	known := sets.New[string]()
	for _, one := range before {
		known.Insert(one.Key())
	}
	for _, one := range now {
		if known.Has(one.Key()) {
			stored = append(stored, one.Err)
			continue
		}
		added = append(added, one.Err)
	}
	return added, stored
}
