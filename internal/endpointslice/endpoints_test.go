package endpointslice

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/example/nginx-operator/internal/fixture"
)

// TestUpdated verifies that endpoints have the conditions of their Pods, as the EndpointSlice
// controller would write them, whatever the conditions were when the bridge was written.
func TestUpdated(t *testing.T) {
	conditions := func(ready, serving, terminating bool) *discoveryv1.EndpointConditions {
		return &discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
	}
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	deleted := &metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now())}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want *discoveryv1.EndpointConditions // nil: no endpoint
	}{
		"ready":            {&corev1.Pod{Status: corev1.PodStatus{Conditions: ready}}, conditions(true, true, false)},
		"not ready":        {&corev1.Pod{}, conditions(false, false, false)},
		"drains":           {&corev1.Pod{ObjectMeta: *deleted, Status: corev1.PodStatus{Conditions: ready}}, conditions(false, true, true)},
		"stops":            {&corev1.Pod{ObjectMeta: *deleted}, conditions(false, false, true)},
		"ended":            {&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded, Conditions: ready}}, nil},
		"does not exist":   {nil, nil},
		"another of a Pod": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "other"}, Status: corev1.PodStatus{Conditions: ready}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			pods := map[types.UID]*corev1.Pod{}
			if test.pod != nil {
				pods[types.UID("pod")+test.pod.UID] = test.pod
			}
			var want []discoveryv1.Endpoint
			target := &corev1.ObjectReference{Kind: "Pod", Name: "web-1", UID: "pod"}
			if test.want != nil {
				want = []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.7"}, TargetRef: target, Conditions: *test.want}}
			}
			for _, earlier := range []*discoveryv1.EndpointConditions{conditions(true, true, false), conditions(false, false, false)} {
				got := updated([]discoveryv1.Endpoint{{Addresses: []string{"192.0.2.7"}, TargetRef: target, Conditions: *earlier}}, pods)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
	other := []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.7"}, Conditions: *conditions(true, true, false)}}
	if diff := cmp.Diff(other, updated(other, nil)); diff != "" {
		t.Errorf("an endpoint that is no Pod changes (-want +got):\n%s", diff)
	}
}

// TestHasEndpoints verifies that only a ready endpoint of the EndpointSlice controller counts, for
// the port of the Service with the number.
func TestHasEndpoints(t *testing.T) {
	object := fixture.NewObject()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.Namespace, Name: object.Name, OwnerReferences: ownedBy(object),
	}}
	service.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "web", Port: 8080}}
	for name, test := range map[string]struct {
		port   string
		ready  bool
		number int32
		want   bool
	}{
		"ready": {"web", true, 8080, true}, "not ready": {"web", false, 8080, false},
		"another port": {"http", true, 8080, false}, "no such port": {"web", true, 9000, false},
	} {
		t.Run(name, func(t *testing.T) {
			slice := managedBy(endpointSliceController, sliceWith(test.port, 8080))
			slice.Endpoints[0].Conditions.Ready = &test.ready
			bridges := newBridges(t, object, interceptor.Funcs{}, service.DeepCopy(), slice)
			reached, err := bridges.HasEndpoints(t.Context(), object, test.number)
			if err != nil || reached != test.want {
				t.Errorf("%t, %v", reached, err)
			}
		})
	}
}
