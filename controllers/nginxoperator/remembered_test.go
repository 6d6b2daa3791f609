package nginxoperator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/metrics"
	"github.com/example/nginx-operator/pkg/apply"
)

// TestTimeToReady verifies that each change is observed once, for any number of reconciles, with
// the time since the first. A reconcile without a change and a deleted object are not observed.
func TestTimeToReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		r := &Reconciler{Applier: &apply.Applier{}, Metrics: metrics.New(registry, noInstances)}
		require := func(count uint64, sum float64) {
			t.Helper()
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, family := range families {
				if family.GetName() != "nginx_operator_time_to_ready_seconds" {
					continue
				}
				if got := family.GetMetric()[0].GetHistogram(); got.GetSampleCount() != count || got.GetSampleSum() != sum {
					t.Errorf("%d observations of %g seconds, want %d of %g", got.GetSampleCount(), got.GetSampleSum(), count, sum)
				}
			}
		}

		object := fixture.NewObject()
		object.Generation = 2
		r.rememberChange(object)
		time.Sleep(time.Second)
		r.rememberChange(object)
		time.Sleep(time.Second)
		r.measureChange(object)
		r.measureChange(object)
		require(1, 2)

		object.Status.ObservedGeneration = 2
		r.rememberChange(object)
		r.measureChange(object)
		require(1, 2)

		object.Generation = 3
		r.rememberChange(object)
		r.Applier.Forget(client.ObjectKeyFromObject(object))
		r.measureChange(object)
		require(1, 2)
	})
}
