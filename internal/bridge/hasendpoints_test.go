package bridge

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/scheme"
)

// TestHasEndpoints verifies that only a ready endpoint of the EndpointSlice controller counts, for
// the port of the Service with the number.
func TestHasEndpoints(t *testing.T) {
	object := fixture.NewObject()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.Namespace, Name: object.Name,
		OwnerReferences: []metav1.OwnerReference{{Kind: "NginxOperator", Name: object.Name, UID: object.UID, Controller: ptr.To(true)}},
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
			slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
				Namespace: object.Namespace, Name: "web-1",
				Labels: map[string]string{discoveryv1.LabelServiceName: object.Name, discoveryv1.LabelManagedBy: endpointSliceController},
			}}
			slice.Ports = []discoveryv1.EndpointPort{{Name: &test.port, Port: ptr.To[int32](8080)}}
			slice.Endpoints = []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &test.ready}}}
			builder := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(service.DeepCopy(), slice)
			for _, kind := range []client.Object{&corev1.Pod{}, &corev1.ConfigMap{}} {
				builder = builder.WithIndex(kind, cached.InstanceIndex, func(client.Object) []string { return nil })
			}
			got, err := newBridges(t, builder.Build(), object).HasEndpoints(t.Context(), object, test.number)
			if err != nil || got != test.want {
				t.Errorf("%t, %v", got, err)
			}
		})
	}
}
