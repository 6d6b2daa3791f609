//go:build bench

package patch

import (
	"slices"
	"testing"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness/cost"
)

func TestCosts(t *testing.T) {
	cases := map[string]cost.Case{}
	for name, of := range dear() {
		for count, many := range map[string]int{"one": 1, "two": 2, "three": 3, "all": maxPatches} {
			declared := slices.Repeat(patches(of[0], of[1]), many)
			cases[name+", "+count] = cost.Of(func() { asAdmission(declared) })
		}
	}
	asAdmission(patches("Deployment", "{}")) // reads the schema, once per process
	cost.Check(t, "patch", cases)
}

// asAdmission runs the functions that answer one review: it checks the text, and applies the
// patches to each kind of child and to the child for the dry run. A reconcile runs the same
// functions.
func asAdmission(declared []v1alpha2.Patch) {
	if errs := Check(declared, at); len(errs) > 0 {
		return
	}
	if _, errs := Apply(declared, children(), at); len(errs) > 0 {
		return
	}
	Apply(declared, children(), at)
}
