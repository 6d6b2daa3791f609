package integration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestModesOfTheNetworkPolicy verifies that mode None deletes the NetworkPolicy and leaves the
// object Ready. Back in the default mode, the operator creates the same NetworkPolicy.
func TestModesOfTheNetworkPolicy(t *testing.T) {
	t.Parallel()
	namespace, object, before := newReadyWeb(t, nil)

	// A pause blocks a deletion like any other change.
	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Paused, o.Spec.NetworkPolicy = true, &v1alpha2.NetworkPolicy{Mode: v1alpha2.NetworkPolicyNone}
	})
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonPaused)
	paused := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t)
	want := []v1alpha2.Blocker{{Reason: v1alpha2.ReasonPaused, Message: `spec.paused blocks: the deletion of NetworkPolicy "web"`}}
	if diff := cmp.Diff(want, paused.Status.BlockedBy); diff != "" {
		t.Errorf("blockedBy (-want +got):\n%s", diff)
	}
	if got := must1(childrenOf(t.Context(), namespace, "web"))(t); got.policy == nil {
		t.Error("a paused object lost its NetworkPolicy")
	}

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused = false })
	rollOutUntilReady(t, namespace)
	requireSamePods(t, before, waitForChildren(t, namespace, "web"))
	isPolicy := func(related v1alpha2.RelatedObject) bool { return related.Kind == "NetworkPolicy" }
	waitFor(t, func() error {
		status := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status
		if slices.ContainsFunc(status.RelatedObjects, isPolicy) {
			return fmt.Errorf("related objects %v", status.RelatedObjects)
		}
		return nil
	})

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.NetworkPolicy = nil })
	if diff := cmp.Diff(before.policy.Spec, waitForChildren(t, namespace, "web").policy.Spec); diff != "" {
		t.Errorf("NetworkPolicy (-before +after):\n%s", diff)
	}
}
