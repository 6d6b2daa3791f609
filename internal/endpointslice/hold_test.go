package endpointslice

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/example/nginx-operator/api/v1alpha2"
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

// TestRenameWaitsForEndpoints verifies that a rename waits, for bridgeEnds at most, until the
// controller's EndpointSlices have the present name of a port that Pods serve: without its
// endpoints there is no bridge, and the port has none under either name.
func TestRenameWaitsForEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		object := fixture.NewObject()
		seen := managedBy(endpointSliceController, sliceWith())
		r := newBridges(t, object, interceptor.Funcs{}, seen, bridgeFor(object))
		service := []corev1.ServicePort{{Name: "http", Port: 8080}, {Name: "p-8082", Port: 8082}}
		now := operand.NewRunning(service, 0, nil, nil, []*corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: ownedBy(object)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "nginx", Ports: []corev1.ContainerPort{{Name: "p-8082", ContainerPort: 8082}},
			}}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		}})
		ports := []corev1.ServicePort{{Name: "http", Port: 8080}, {Name: "web", Port: 8082}}
		r.Applier.Memory.Update(object, func(known *apply.Remembered) { known.Bridged = time.Now() })
		time.Sleep(bridgeEnds)
		for _, want := range []struct {
			after time.Duration
			hold  bool
		}{{0, true}, {0, true}, {bridgeEnds - time.Second, true}, {time.Second, false}} {
			time.Sleep(want.after)
			hold, again, err := r.Ensure(t.Context(), object, now, ports)
			if hold != want.hold || hold != (again > 0) || err != nil {
				t.Errorf("the rename is held: %t, want %t; the next reconcile is in %s; %v", hold, want.hold, again, err)
			}
		}

		patch := client.MergeFrom(seen.DeepCopy())
		seen.Ports = sliceWith("http", 8080, "p-8082", 8082).Ports
		if err := r.Applier.Client.Patch(t.Context(), seen, patch); err != nil {
			t.Fatal(err)
		}
		if hold, _, err := r.Ensure(t.Context(), object, now, ports); !hold || err != nil {
			t.Errorf("with endpoints, no bridge is written: %v", err)
		}
	})
}

// bridgeFor returns the bridge of an earlier rename, which has no name of the Service any more.
func bridgeFor(object *v1alpha2.NginxOperator) *discoveryv1.EndpointSlice {
	bridge := managedBy(wellknown.OperatorName, sliceWith("old", 8080))
	bridge.Name, bridge.OwnerReferences = "web-0-renamed", ownedBy(object)
	return bridge
}
