package status

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/pkg/apply"
)

// TestStatusWhileForgeryIsReplaced verifies that the object is not Ready, and neither Degraded nor
// blocked, while a forged child is replaced. One Event reports the forgery.
func TestStatusWhileForgeryIsReplaced(t *testing.T) {
	object := fixture.NewObject()
	forged := &apply.Forged{Kind: "ConfigMap", Child: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-abc"}}}
	state := live.Observed{Deployment: fixture.NewDeployment(1)}
	result := Outcome{Written: Written{Failure: WriteFailure(forged, &object.Spec), Replaced: true}}
	expect := func(when string, ready metav1.ConditionStatus, reason, degraded string) {
		t.Helper()
		got := conditions(object, state, result, nil)
		if got[0].Status != ready || got[0].Reason != reason || got[2].Reason != degraded {
			t.Errorf("%s: %+v", when, got)
		}
		object.Status.Conditions = got
	}
	expect("found", metav1.ConditionFalse, v1alpha2.ReasonForgedContent, v1alpha2.ReasonAsExpected)
	if got := blockedBy(state, result, nil); len(got) != 0 {
		t.Errorf("blocked by %+v", got)
	}
	before := v1alpha2.NginxOperatorStatus{Conditions: []metav1.Condition{
		condition(v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonRolloutComplete, ""),
	}}
	events := Transitions(&before, object.Status.Conditions)
	if len(events) != 1 || events[0].EventType != corev1.EventTypeWarning || events[0].Reason != v1alpha2.ReasonForgedContent ||
		!strings.Contains(events[0].Message, `ConfigMap "web-abc" was replaced by one with other content`) {
		t.Errorf("Events %+v", events)
	}
	result = Outcome{}
	state.Deployment.Generation++
	expect("rolling", metav1.ConditionFalse, v1alpha2.ReasonForgedContent, v1alpha2.ReasonAsExpected)
	expect("still rolling", metav1.ConditionFalse, v1alpha2.ReasonForgedContent, v1alpha2.ReasonAsExpected)
	state.Deployment = fixture.NewDeployment(1)
	expect("replaced", metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady, v1alpha2.ReasonAsExpected)

	result = Outcome{Written: Written{Failure: WriteFailure(revision.Lost{Name: "web-abc"}, &object.Spec)}}
	expect("lost", metav1.ConditionFalse, v1alpha2.ReasonReferenceNotFound, v1alpha2.ReasonReferenceNotFound)
}
