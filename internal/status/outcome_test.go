package status

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/pkg/apply"
)

// TestLastGood verifies that only a revision with at least one ready Pod is good, and that it
// retains its first time.
func TestLastGood(t *testing.T) {
	object := fixture.NewObject()
	result := newOutcome(t, object)
	rolling := func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }
	for name, state := range map[string]live.Observed{
		"no Deployment": {}, "scaled to zero": {Deployment: fixture.NewDeployment(0)}, "rolling": {Deployment: fixture.NewDeployment(2, rolling)},
	} {
		if got := lastGood(object, state, result); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	complete := live.Observed{Deployment: fixture.NewDeployment(2)}
	first := lastGood(object, complete, result)
	if first == nil || first.Revision != "web-"+string(result.Applied.Pods.Change) || first.Image != fixture.Image ||
		first.ConfigHash == "" || first.Time.IsZero() {
		t.Fatalf("%+v", first)
	}
	first.Time = metav1.NewTime(time.Unix(1, 0))
	object.Status.LastGoodRevision = first
	if again := lastGood(object, complete, result); *again != *first {
		t.Errorf("%+v, want %+v", again, first)
	}
	object.Spec.Image = "nginx:other"
	if next := lastGood(object, complete, newOutcome(t, object)); next.Revision == first.Revision || next.Image != "nginx:other" {
		t.Errorf("%+v", next)
	}
}

// TestFailedRevisions verifies that a revision that was rolled back stays in the status while the
// object requests it, up to the limit of the schema.
func TestFailedRevisions(t *testing.T) {
	object := fixture.NewObject()
	result := newOutcome(t, object)
	names := func() (out []string) {
		for _, failed := range failedRevisions(object, nil, result, time.Now()) {
			out = append(out, failed.Revision)
		}
		return out
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		object.Status.FailedRevisions = append(object.Status.FailedRevisions, v1alpha2.FailedRevision{Revision: name, Change: "u-" + name})
	}
	declared := *result.Declared
	result.Declared = nil
	result.Failed = &v1alpha2.FailedRevision{Revision: "e"}
	if got := names(); !slices.Equal(got, []string{"b", "c", "d", "e"}) {
		t.Errorf("blocked: %v", got)
	}
	declared.Change = "u-b"
	result.Declared, result.Retries, result.Failed = &declared, &v1alpha2.FailedRevision{Revision: "d"}, nil
	if got := names(); !slices.Equal(got, []string{"b", "d"}) {
		t.Errorf("asked for b and d: %v", got)
	}
	object.Spec.Paused = true
	if got := names(); len(got) != 4 {
		t.Errorf("paused: %v", got)
	}
}

// TestAttempt verifies the status of a failed revision that is rolled out again: it has the start
// of the attempt, and is gone when the revision is good.
func TestAttempt(t *testing.T) {
	object, now := fixture.NewObject(), time.Unix(1000, 0)
	result := newOutcome(t, object)
	id := string(result.Applied.Pods.Change)
	due := v1alpha2.FailedRevision{Revision: "web-" + id, Change: id, Attempts: 2, NextAttemptTime: ptr.To(metav1.NewTime(now))}
	object.Status.FailedRevisions = []v1alpha2.FailedRevision{due}
	result.Attempt = &due

	result.Failure = &failure.Failure{Reason: v1alpha2.ReasonAPIError}
	if got := failedRevisions(object, nil, result, now); got[0].AttemptTime != nil || got[0].NextAttemptTime == nil {
		t.Errorf("not written: %+v", got)
	}
	result.Failure = nil
	got := failedRevisions(object, nil, result, now)
	if len(got) != 1 || got[0].Attempts != 2 || got[0].NextAttemptTime != nil || !got[0].AttemptTime.Equal(ptr.To(metav1.NewTime(now))) {
		t.Errorf("started: %+v", got)
	}
	object.Status.FailedRevisions = got
	if later := failedRevisions(object, nil, result, now.Add(time.Minute)); !later[0].AttemptTime.Equal(got[0].AttemptTime) {
		t.Errorf("later: %+v", later)
	}

	result.Failed = &v1alpha2.FailedRevision{Revision: due.Revision, Change: id, Attempts: 3}
	if failed := failedRevisions(object, nil, result, now); len(failed) != 1 || failed[0].Attempts != 3 || failed[0].AttemptTime != nil {
		t.Errorf("failed again: %+v", failed)
	}
	result.Failed = nil
	if good := failedRevisions(object, &v1alpha2.GoodRevision{Change: id}, result, now); len(good) != 0 {
		t.Errorf("good: %+v", good)
	}
	result.Attempt = nil // spec.rollout.automaticRollback is false
	if kept := failedRevisions(object, nil, result, now); len(kept) != 0 {
		t.Errorf("without rollbacks: %+v", kept)
	}
}

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
		progressing.Reason != v1alpha2.ReasonWaitingForFleet || !strings.Contains(progressing.Message, `image "next";`) ||
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
		State: rollout.StateUnusable, Blockers: []failure.Failure{{Reason: v1alpha2.ReasonReferenceNotFound, Message: "no ConfigMap"}},
	}}
	for want, good := range map[string]*v1alpha2.GoodRevision{
		"no ConfigMap; nothing is created until this is corrected":                                nil,
		"no ConfigMap; the Deployment does not exist and is created again once this is corrected": {Revision: "web-1"},
	} {
		object.Status.LastGoodRevision = good
		status := statusOf(object, live.Observed{}, result)
		if got := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionDegraded).Message; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestStatusOfOutdated verifies that the condition exists while the spec has a refused value, and
// stays while the spec cannot be evaluated. It does not affect other conditions.
func TestStatusOfOutdated(t *testing.T) {
	object := fixture.NewObject()
	result := newOutcome(t, object)
	path := operand.SpecPath.Child("monitoring", "podMonitor", "interval")
	result.Outdated = field.ErrorList{field.Invalid(path, "1s", "must be at least 5s")}
	is := func(want bool) {
		t.Helper()
		object.Status = statusOf(object, live.Observed{}, result)
		found := meta.FindStatusCondition(object.Status.Conditions, v1alpha2.ConditionOutdated)
		if (found != nil) != want {
			t.Fatalf("conditions %+v", object.Status.Conditions)
		}
		if want && (found.Status != metav1.ConditionTrue || !strings.Contains(found.Message, "podMonitor.interval: Invalid value: \"1s\"")) {
			t.Errorf("condition %+v", found)
		}
		if !meta.IsStatusConditionFalse(object.Status.Conditions, v1alpha2.ConditionDegraded) || len(object.Status.BlockedBy) > 0 {
			t.Errorf("the object is degraded: %+v", object.Status)
		}
	}
	result.Resolved = true
	is(true)
	result.Outdated, result.Resolved = nil, false
	is(true)
	result.Resolved = true
	is(false)
}

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
		!strings.Contains(events[0].Message, `another client replaced ConfigMap "web-abc" by one with other content`) {
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
