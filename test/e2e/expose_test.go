package e2e

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hasIngress requires the Ingress of a sample. No Ingress controller runs here, but the instance is
// ready anyway.
func hasIngress(t *testing.T, namespace, name, host string) {
	t.Helper()
	ingress := &networkingv1.Ingress{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, ingress))
	if class := ingress.Spec.IngressClassName; class == nil || *class != "nginx" {
		t.Errorf("the class is %v", class)
	}
	if len(ingress.Spec.Rules) != 1 || ingress.Spec.Rules[0].Host != host || len(ingress.Spec.Rules[0].HTTP.Paths) != 1 {
		t.Fatalf("the rules are %+v", ingress.Spec.Rules)
	}
	path := ingress.Spec.Rules[0].HTTP.Paths[0]
	want := networkingv1.IngressServiceBackend{Name: name, Port: networkingv1.ServiceBackendPort{Number: 8080}}
	if path.Path != "/" || *path.PathType != networkingv1.PathTypePrefix || *path.Backend.Service != want {
		t.Errorf("the path is %+v", path)
	}
}
