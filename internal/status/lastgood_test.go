package status

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/snapshot"
)

// TestLastGood verifies that only a revision with at least one ready Pod is good, and that it
// retains its first time.
func TestLastGood(t *testing.T) {
	object := fixture.NewObject()
	result := newOutcome(t, object)
	rolling := func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }
	for name, state := range map[string]snapshot.Observed{
		"no Deployment": {}, "scaled to zero": {Deployment: fixture.NewDeployment(0)}, "rolling": {Deployment: fixture.NewDeployment(2, rolling)},
	} {
		if got := lastGood(object, state, result); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	complete := snapshot.Observed{Deployment: fixture.NewDeployment(2)}
	first := lastGood(object, complete, result)
	if first == nil || first.Revision != result.Applied.Revision.Name || first.Image != fixture.Image ||
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
		for _, failed := range failedRevisions(object, result) {
			out = append(out, failed.Revision)
		}
		return out
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		object.Status.FailedRevisions = append(object.Status.FailedRevisions, v1alpha2.FailedRevision{Revision: name})
	}
	result.Candidates = nil
	result.Failed = &v1alpha2.FailedRevision{Revision: "e"}
	if got := names(); !slices.Equal(got, []string{"b", "c", "d", "e"}) {
		t.Errorf("blocked: %v", got)
	}
	result.Candidates, result.Failed = []string{"b", "d"}, nil
	if got := names(); !slices.Equal(got, []string{"b", "d"}) {
		t.Errorf("asked for b and d: %v", got)
	}
	object.Spec.Paused = true
	if got := names(); len(got) != 4 {
		t.Errorf("paused: %v", got)
	}
}
