package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// requireSamePods requires that no change between two states of an instance replaces a Pod. The
// generation of the Deployment can change: the first change of a spec removes an annotation.
func requireSamePods(t *testing.T, before, after children) {
	t.Helper()
	if diff := cmp.Diff(before.deployment.Spec.Template, after.deployment.Spec.Template); diff != "" {
		t.Errorf("the Pod template changed (-before +after):\n%s", diff)
	}
}
