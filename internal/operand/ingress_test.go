package operand

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestBackendPort verifies that the Ingress and the HTTPRoute reference the first port without TLS.
// They leave their current port only for one that a ready Pod serves.
func TestBackendPort(t *testing.T) {
	now := func(ingress int32, service, ready []int32) Running {
		out := Running{exposed: ingress, ready: sets.New(ready...)}
		for _, number := range service {
			out.Service = append(out.Service, corev1.ServicePort{Port: number})
		}
		return out
	}
	type numbers = []int32
	for name, test := range map[string]struct {
		now  Running
		want int32
	}{
		"nothing runs":                        {Running{}, 9090},
		"the first time":                      {now(0, numbers{8080, 9090}, numbers{8080}), 9090},
		"no Pod is ready":                     {now(8080, numbers{8080, 9090}, nil), 9090},
		"only Pods of before are ready":       {now(8080, numbers{8080, 9090}, numbers{8080}), 8080},
		"a Pod of each is ready":              {now(8080, numbers{8080, 9090}, numbers{8080, 9090}), 9090},
		"Pods of before on another port":      {now(8080, numbers{8080, 9090}, numbers{8081}), 9090},
		"the Service has the port no more":    {now(8080, numbers{9090}, numbers{8080}), 9090},
		"the rollout is over":                 {now(9090, numbers{9090}, numbers{9090}), 9090},
		"somebody set a port of no Pod":       {now(1, numbers{9090}, numbers{9090}), 9090},
		"nothing is ready where it was moved": {now(9090, numbers{8080, 9090}, numbers{8080}), 9090},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject(fixture.Routed(v1alpha2.GatewayReference{Name: "public"}, "a.example.com"),
				fixture.Ports("secure", 9443, "web", 9090, "admin", 8081))
			object.Spec.Ports[0].AppProtocol = "https"
			if port := *partsFor(object, Inputs{Running: test.now}).route.Spec.Rules[0].BackendRefs[0].Port; port != test.want {
				t.Errorf("the HTTPRoute asks for %d, want %d", port, test.want)
			}
			fixture.Exposed(v1alpha2.IngressHost{Host: "a.example.com"})(&object.Spec)
			backend := partsFor(object, Inputs{Running: test.now}).ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
			if backend.Name != "web" || backend.Port != (networkingv1.ServiceBackendPort{Number: test.want}) {
				t.Errorf("the Ingress asks for %+v, want %d", backend, test.want)
			}
		})
	}
}

// TestAnnotationsOfTheIngress verifies that a user cannot set the operator's annotations.
func TestAnnotationsOfTheIngress(t *testing.T) {
	object := fixture.NewObject(fixture.Exposed(v1alpha2.IngressHost{Host: "a.example.com"}))
	object.Spec.Expose.Ingress.Annotations = map[string]string{"a": "b", wellknown.AnnotationLastDeclared: "not-yours"}
	if diff := gocmp.Diff(map[string]string{"a": "b"}, desiredIngress(object, Inputs{}).Annotations); diff != "" {
		t.Error(diff)
	}
}
