package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// requireSamePods requires that no change between two states of an instance replaces a Pod. The
// generation of the Deployment can change: the first change of a spec removes an annotation.
func requireSamePods(t *testing.T, before, after children) {
	t.Helper()
	if diff := cmp.Diff(before.deployment.Spec.Template, after.deployment.Spec.Template); diff != "" {
		t.Errorf("the Pod template changed (-before +after):\n%s", diff)
	}
}

// rollOutUntilReady plays the Deployment controller until the instance web is Ready. No Deployment
// controller observes a new generation.
func rollOutUntilReady(t *testing.T, namespace string) {
	t.Helper()
	waitFor(t, func() error {
		rollOut(t, namespace, "web")
		object, err := waitForStatusOnce(t.Context(), namespace, "web")
		if err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha2.ConditionReady); ready == nil ||
			ready.Reason != v1alpha2.ReasonAllReplicasReady || ready.ObservedGeneration != object.Generation {
			return fmt.Errorf("the instance is not Ready: %+v", ready)
		}
		return nil
	})
}
