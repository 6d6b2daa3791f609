package nginxoperator

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/pkg/manager"
)

// TestStatusLater verifies that several changes of a Deployment's status start one reconcile, and
// that nothing else waits.
func TestStatusLater(t *testing.T) {
	object := fixture.NewObject()
	deployment := func(resourceVersion string, generation int64) *appsv1.Deployment {
		out := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: object.Namespace, Name: object.Name, ResourceVersion: resourceVersion, Generation: generation,
		}}
		out.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(object, v1alpha2.GroupVersion.WithKind("NginxOperator"))}
		return out
	}
	type change struct {
		after time.Duration
		event.UpdateEvent
	}
	for name, test := range map[string]struct {
		changes []change
		want    time.Duration
	}{
		"two of its status": {[]change{
			{0, event.UpdateEvent{ObjectOld: deployment("1", 1), ObjectNew: deployment("2", 1)}},
			{statusDelay / 2, event.UpdateEvent{ObjectOld: deployment("2", 1), ObjectNew: deployment("3", 1)}},
		}, statusDelay},
		"its spec": {[]change{{0, event.UpdateEvent{ObjectOld: deployment("1", 1), ObjectNew: deployment("2", 2)}}}, 0},
		"its status, then its spec": {[]change{
			{0, event.UpdateEvent{ObjectOld: deployment("1", 1), ObjectNew: deployment("2", 1)}},
			{statusDelay / 2, event.UpdateEvent{ObjectOld: deployment("2", 1), ObjectNew: deployment("3", 2)}},
		}, statusDelay / 2},
		"a resync": {[]change{{0, event.UpdateEvent{ObjectOld: deployment("1", 1), ObjectNew: deployment("1", 1)}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options := manager.ControllerOptions()
				queue := options.NewQueue("status", options.RateLimiter)
				defer queue.ShutDown()
				began := time.Now()
				go func() {
					for _, change := range test.changes {
						time.Sleep(change.after)
						statusLater{enqueue(cached.ControllingInstance)}.Update(t.Context(), change.UpdateEvent, queue)
					}
				}()
				if _, _ = queue.Get(); time.Since(began) != test.want {
					t.Errorf("the reconcile starts after %s, want %s", time.Since(began), test.want)
				}
				time.Sleep(10 * statusDelay)
				if got := queue.Len(); got != 0 {
					t.Errorf("%d more requests", got)
				}
			})
		})
	}
}
