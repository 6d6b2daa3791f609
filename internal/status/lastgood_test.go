package status

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/live"
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
