package nginxoperator

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// exposed returns a change of a spec to an Ingress for these hosts.
func exposed(hosts ...v1alpha2.IngressHost) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) {
		s.Expose = &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{Hosts: hosts}}
	}
}

// The Ingress asks for the first port with plain HTTP, and leaves the one that it has only for one on which a Pod is ready.
func TestBackendPort(t *testing.T) {
	now := func(ingress int32, service, ready []int32) running {
		out := running{exposed: ingress, ready: sets.New(ready...)}
		for _, number := range service {
			out.service = append(out.service, corev1.ServicePort{Port: number})
		}
		return out
	}
	type numbers = []int32
	for name, test := range map[string]struct {
		now  running
		want int32
	}{
		"nothing runs":                        {running{}, 9090},
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
			object := newObject(exposed(v1alpha2.IngressHost{Host: "a.example.com"}), ports("secure", 9443, "web", 9090, "admin", 8081))
			object.Spec.Ports[0].AppProtocol = "https"
			got := desiredIngress(object, inputs{running: test.now}).Spec.Rules[0].HTTP.Paths[0].Backend.Service
			if got.Name != "web" || got.Port != (networkingv1.ServiceBackendPort{Number: test.want}) {
				t.Errorf("asks for %+v, want %d", got, test.want)
			}
		})
	}
}

// The URL is that of the first host whose name is one, once somebody serves the Ingress.
func TestExposedURL(t *testing.T) {
	const inside = "http://web.shop.svc:8080"
	host := func(name, secret string, paths ...string) v1alpha2.IngressHost {
		return v1alpha2.IngressHost{Host: name, TLSSecretName: secret, Paths: paths}
	}
	plain, secure, all := host("a.example.com", ""), host("b.example.com", "b"), host("*.example.com", "")
	type hosts = []v1alpha2.IngressHost
	for name, test := range map[string]struct {
		hosts     []v1alpha2.IngressHost
		addresses []string
		want      string
	}{
		"no Ingress":      {nil, []string{"192.0.2.1"}, inside},
		"no address":      {hosts{plain}, nil, inside},
		"plain":           {hosts{plain, secure}, []string{"192.0.2.1"}, "http://a.example.com"},
		"TLS":             {hosts{secure}, []string{"lb"}, "https://b.example.com"},
		"a path":          {hosts{host("a.example.com", "", "/shop/", "/")}, []string{"lb"}, "http://a.example.com/shop"},
		"a wildcard":      {hosts{all, plain}, []string{"lb"}, "http://a.example.com"},
		"only a wildcard": {hosts{all}, []string{"lb"}, inside},
	} {
		t.Run(name, func(t *testing.T) {
			object := newObject()
			if test.hosts != nil {
				exposed(test.hosts...)(&object.Spec)
			}
			state := observed{service: desiredService(object, inputs{}).Spec.Ports, addresses: test.addresses}
			if got, found := instanceURL(object, state); got != test.want || !found {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestIngressAddresses(t *testing.T) {
	ingress := &networkingv1.Ingress{}
	if got := ingressAddresses(ingress); got != nil {
		t.Errorf("without a status: %v", got)
	}
	ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{
		{IP: "192.0.2.1"}, {Hostname: "lb.example.com"}, {IP: "192.0.2.2", Hostname: "b.example.com"}, {},
	}
	want := []string{"192.0.2.1", "lb.example.com", "192.0.2.2", "b.example.com"}
	if diff := gocmp.Diff(want, ingressAddresses(ingress)); diff != "" {
		t.Error(diff)
	}
}

// The operator's annotations are not the user's to set.
func TestAnnotationsOfTheIngress(t *testing.T) {
	object := newObject(exposed(v1alpha2.IngressHost{Host: "a.example.com"}))
	object.Spec.Expose.Ingress.Annotations = map[string]string{"a": "b", wellknown.AnnotationLastDeclared: "not-yours"}
	if diff := gocmp.Diff(map[string]string{"a": "b"}, desiredIngress(object, inputs{}).Annotations); diff != "" {
		t.Error(diff)
	}
}

// A reconcile is made when a controller reports an address, and not for the operator's own write.
func TestIngressChanged(t *testing.T) {
	before := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
	after := before.DeepCopy()
	after.ResourceVersion = "2"
	changed := childChanged(func(client.Object) bool { return true })
	if changed.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("a write that changes nothing is passed")
	}
	after.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
	if !changed.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("an address is not passed")
	}
}
