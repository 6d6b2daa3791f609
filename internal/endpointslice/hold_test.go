package endpointslice

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/apply"
)

// TestBridgeHoldsByItsOwnClock verifies that a bridge holds a renamed port for bridgeSettles, even
// if the clock of the API server is ahead of or behind the operator's.
func TestBridgeHoldsByItsOwnClock(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"same clock": 0, "ahead by an hour": time.Hour, "behind by a second": -time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				object := fixture.NewObject()
				slice := managedBy(wellknown.OperatorName, sliceWith("web", 8080))
				slice.CreationTimestamp, slice.OwnerReferences = metav1.NewTime(time.Now().Add(ahead)), ownedBy(object)
				r := newBridges(t, object, interceptor.Funcs{}, slice)
				now := operand.Running{
					Service:    []corev1.ServicePort{{Name: "http", Port: 80}},
					Containers: []operand.ContainerPort{{Name: "web", Number: 80, Listens: 8080}},
				}
				hold := func() bool {
					t.Helper()
					hold, again, err := r.Ensure(t.Context(), object, now, []corev1.ServicePort{{Name: "web", Port: 80}})
					if err != nil || again <= 0 || again > bridgeSettles {
						t.Fatalf("the next reconcile is in %s: %v", again, err)
					}
					return hold
				}

				if !hold() {
					t.Error("a new bridge does not hold the change")
				}
				time.Sleep(bridgeSettles)
				if hold() {
					t.Errorf("the change is still held after %s", bridgeSettles)
				}
			})
		})
	}
}

// TestNewBridgeHolds verifies that a new bridge holds a renamed port for bridgeSettles, although an
// earlier bridge of the object was older.
func TestNewBridgeHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		object := fixture.NewObject()
		r := newBridges(t, object, interceptor.Funcs{}, managedBy(endpointSliceController, sliceWith("http", 8080)))
		now := operand.Running{
			Service:    []corev1.ServicePort{{Name: "http", Port: 8080}},
			Containers: []operand.ContainerPort{{Name: "http", Number: 8080, Listens: 8080}},
		}
		r.Applier.Memory.Update(object, func(known *apply.Remembered) { known.Bridged = time.Now() })
		time.Sleep(bridgeEnds)
		for _, want := range []struct {
			after time.Duration
			hold  bool
		}{{0, true}, {bridgeSettles / 2, true}, {bridgeSettles / 2, false}} {
			time.Sleep(want.after)
			hold, _, err := r.Ensure(t.Context(), object, now, []corev1.ServicePort{{Name: "web", Port: 8080}})
			if hold != want.hold || err != nil {
				t.Errorf("the rename is held: %t, want %t; %v", hold, want.hold, err)
			}
		}
	})
}
