package integration

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

// markerName is the name of the markers. What belongs to one does not count.
const markerName = "marker"

// waitForMarker returns when the operator has reconciled changes that are made now, of an object that no test looks at: what it does
// because of earlier changes in that namespace, it does before, or not at all. The object is paused, so it has nothing but a status. There
// are two changes, because the operator works on several objects at a time: what began beside the first has ended with the second.
func waitForMarker(t *testing.T, namespace string) {
	t.Helper()
	marker := newInstance(namespace, markerName)
	marker.Spec.Paused = true
	if err := suite.admin.Create(t.Context(), marker); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for range 2 {
		update(t, marker, func(o *v1alpha2.NginxOperator) {
			o.Spec.DrainSeconds = ptr.To(ptr.Deref(o.Spec.DrainSeconds, v1alpha2.DefaultDrainSeconds) + 1)
		})
		waitFor(t, func() error {
			_, err := waitForStatusOnce(t.Context(), namespace, markerName)
			return err
		})
	}
}

// waitForIdle returns when the operator has nothing to do: what happened before is reconciled, also that objects were deleted, which
// ends what was to be done for them later. It is for tests beside which no other runs.
func waitForIdle(t *testing.T) {
	t.Helper()
	waitForMarker(t, newNamespace(t))
	waitForNoWork(t)
}

// waitForNoWork returns when the operator reconciles nothing at the moment, and nothing waits for it.
func waitForNoWork(t *testing.T) {
	t.Helper()
	waitFor(t, func() error {
		waiting := sumOf(t, "workqueue_depth", "name", "nginxoperator")
		running := sumOf(t, "controller_runtime_active_workers", "controller", "nginxoperator")
		if waiting != 0 || running != 0 {
			return fmt.Errorf("%d objects wait, %d are reconciled", waiting, running)
		}
		return nil
	})
}

// sumOf adds up the values of a metric of which a label has a value.
func sumOf(t *testing.T, metric, label, value string) int {
	t.Helper()
	total := 0.0
	for _, sample := range must1(harness.Samples(scrape(t), metric))(t) {
		if sample.Labels[label] == value {
			total += sample.Value
		}
	}
	return int(total)
}
