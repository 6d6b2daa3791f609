package live

import (
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/scheme"
)

// TestState verifies that a state has its own writes, that a child of somebody else is found but is
// none of the object's, and that a child of a kind that is listed, or that could not be read, is
// not known to be missing. A kind that is not served is not read.
func TestState(t *testing.T) {
	object := fixture.NewObject()
	meta := metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name}
	deployment, service := &appsv1.Deployment{ObjectMeta: meta}, &corev1.Service{ObjectMeta: meta}
	configMap := &corev1.ConfigMap{ObjectMeta: meta}
	route, monitor := &gatewayv1.HTTPRoute{ObjectMeta: meta}, &monitoringv1.PodMonitor{ObjectMeta: meta}
	api := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(service, route, monitor).
		WithIndex(&corev1.Pod{}, cached.InstanceIndex, func(client.Object) []string { return nil }).Build()
	before, err := Read(t.Context(), api, object, map[string]string{"HTTPRoute": "not installed"})
	if err != nil {
		t.Fatal(err)
	}

	owned := deployment.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(object, v1alpha2.GroupVersion.WithKind("NginxOperator"))}
	after := before.With(owned, configMap)
	for name, test := range map[string]struct {
		state         State
		child         client.Object
		exists, known bool
	}{
		"missing":           {before, deployment, false, true},
		"of a missing kind": {before, route, false, true},
		"of a served kind":  {before, monitor, true, true},
		"of a list":         {before, configMap, false, false},
		"written":           {after, deployment, true, true},
		"written of a list": {after, configMap, true, true},
		"somebody else's":   {after, service, true, true},
		"deleted":           {after.Without(deployment), deployment, false, true},
		"with another name": {after, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if found, known := test.state.Find(test.child); (found != nil) != test.exists || known != test.known {
				t.Errorf("found %v, known %t", found, known)
			}
		})
	}
	if got := after.Deployment(); got != owned || len(after.Service().Name) > 0 {
		t.Errorf("Deployment %v, Service %v", got, after.Service())
	}
	if _, err := after.Stale(nil, nil); err == nil {
		t.Error("children of a kind that could not be listed are known")
	}
}
