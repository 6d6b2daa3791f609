package status

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/rollout"
)

// TestStatusWhileWaiting verifies that an object that waits for a rollout slot is Ready and not
// Degraded, and reports the pending changes. While it scales, it reports the scaling.
func TestStatusWhileWaiting(t *testing.T) {
	object := fixture.NewObject()
	result := newOutcome(t, object)
	result.State, result.WaitsFor = rollout.StateWaiting, `image "next"`
	state := with(live.Observed{Deployment: fixture.NewDeployment(1)}, object, result)
	status := statusOf(object, state, result)
	progressing := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionProgressing)
	if !meta.IsStatusConditionTrue(status.Conditions, v1alpha2.ConditionReady) || progressing.Status != metav1.ConditionTrue ||
		progressing.Reason != v1alpha2.ReasonWaitingForFleet || progressing.Message != rollout.WaitingMessage(result.WaitsFor) ||
		meta.IsStatusConditionTrue(status.Conditions, v1alpha2.ConditionDegraded) || len(status.BlockedBy) > 0 {
		t.Errorf("%+v", status)
	}
	if status.LastGoodRevision == nil {
		t.Error("what serves is not written down")
	}
	before := statusOf(object, state, newOutcome(t, object))
	events := Transitions(&before, status.Conditions)
	if len(events) != 1 || events[0].Reason != v1alpha2.ReasonWaitingForFleet || events[0].EventType != corev1.EventTypeNormal {
		t.Errorf("Events %+v", events)
	}
	if again := Transitions(&status, status.Conditions); len(again) > 0 {
		t.Errorf("told again: %+v", again)
	}
	unavailable := fixture.NewDeployment(2, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 })
	scaling := with(live.Observed{Deployment: unavailable}, object, result)
	status = statusOf(object, scaling, result)
	if reason := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionProgressing).Reason; reason == v1alpha2.ReasonWaitingForFleet {
		t.Error("it waits while its Pods are not ready")
	}
}

// TestBlockedWithoutDeployment verifies that a blocked object reports that its Deployment was
// deleted.
func TestBlockedWithoutDeployment(t *testing.T) {
	object := fixture.NewObject()
	result := Outcome{Decision: rollout.Decision{
		State: rollout.StateBlocked, Blockers: []failure.Failure{{Reason: v1alpha2.ReasonReferenceNotFound, Message: "no ConfigMap"}},
	}}
	for want, good := range map[string]*v1alpha2.GoodRevision{
		"no ConfigMap; nothing is created before that":                                 nil,
		"no ConfigMap; the Deployment does not exist, and is created again after that": {Revision: "web-1"},
	} {
		object.Status.LastGoodRevision = good
		status := statusOf(object, live.Observed{}, result)
		if got := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionDegraded).Message; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
