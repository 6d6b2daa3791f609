package integration

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

// markerName is the name of the marker objects. Tests do not count requests and Events of a marker.
const markerName = "marker"

// waitForMarker changes an object that no test examines and returns when the operator has
// reconciled the change. By then the operator has finished the work of earlier changes in that
// namespace. The object is paused, so it has a status and no children. waitForMarker makes two
// changes because the operator reconciles several objects concurrently: a reconcile that ran next
// to the first change has ended by the second.
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

// waitForIdle returns when the operator is idle. It has then reconciled all earlier changes,
// including deletions, which end the delayed work for the deleted objects. Parallel tests must not
// call it.
func waitForIdle(t *testing.T) {
	t.Helper()
	waitForMarker(t, newNamespace(t))
	waitForNoWork(t)
}

// waitForNoWork returns when the operator reconciles no object and its workqueue is empty.
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

// sumOf returns the sum of a metric's samples in which a label has a value.
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
