package status

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
)

func TestInstanceURL(t *testing.T) {
	only := func(port int32) func(*v1alpha2.NginxOperatorSpec) {
		return func(s *v1alpha2.NginxOperatorSpec) {
			s.Ports, s.TLS = []v1alpha2.Port{}, []v1alpha2.TLS{{SecretName: "a", Port: ptr.To(port), TargetPort: ptr.To[int32](8443)}}
		}
	}
	ip, host := corev1.LoadBalancerIngress{IP: "192.0.2.1"}, corev1.LoadBalancerIngress{Hostname: "lb.example.com"}
	six := corev1.LoadBalancerIngress{IP: "2001:db8::1"}
	for _, test := range []struct {
		object  *v1alpha2.NginxOperator
		ingress []corev1.LoadBalancerIngress
		want    string
	}{
		{fixture.NewObject(fixture.OnPort(80)), nil, "http://web.shop.svc"},
		{fixture.NewObject(fixture.OnPort(8080)), nil, "http://web.shop.svc:8080"},
		{fixture.NewObject(fixture.OnPort(443)), nil, "http://web.shop.svc:443"},
		{fixture.NewObject(fixture.Ports("http", "80 to 8080")), nil, "http://web.shop.svc"},
		{fixture.NewObject(only(443)), nil, "https://web.shop.svc"},
		{fixture.NewObject(only(80)), nil, "https://web.shop.svc:80"},
		{fixture.NewObject(fixture.OnPort(80)), []corev1.LoadBalancerIngress{ip, host}, "http://192.0.2.1"},
		{fixture.NewObject(only(443)), []corev1.LoadBalancerIngress{host, ip}, "https://lb.example.com"},
		{fixture.NewObject(fixture.OnPort(80)), []corev1.LoadBalancerIngress{six}, "http://[2001:db8::1]"},
		{fixture.NewObject(fixture.OnPort(8080)), []corev1.LoadBalancerIngress{six}, "http://[2001:db8::1]:8080"},
	} {
		state := live.Observed{Service: operand.DesiredService(test.object, operand.Inputs{}).Spec.Ports, Balancer: test.ingress}
		if got := instanceURL(test.object, bySpec(test.object), state); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
	if object := fixture.NewObject(fixture.OnPort(80)); instanceURL(object, bySpec(object), live.Observed{}) != "" {
		t.Error("there is a URL without a Service")
	}
}

// TestURLOfAnEarlierEntrance verifies the URL while the entrance is not that of the spec: the host
// of the Ingress stays, and otherwise the URL has a port of the Service.
func TestURLOfAnEarlierEntrance(t *testing.T) {
	stored := &revision.Rendering{Entrance: &revision.Declaration{}}
	object := fixture.NewObject(fixture.OnPort(9090))
	object.Status.URL = "https://web.example.com"
	service := []corev1.ServicePort{{Name: "tls-443", Port: 443}}
	for want, state := range map[string]live.Observed{
		"https://web.example.com": {Service: service, Addresses: []string{"192.0.2.1"}}, "https://web.shop.svc": {Service: service},
	} {
		if got := instanceURL(object, stored, state); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// bySpec returns a rendering whose entrance is that of a spec.
func bySpec(object *v1alpha2.NginxOperator) *revision.Rendering {
	return &revision.Rendering{Entrance: &revision.Declaration{Object: object}}
}

func TestAddresses(t *testing.T) {
	ports := func(n int32) (out []corev1.ServicePort) {
		for i := range n {
			out = append(out, corev1.ServicePort{Port: 80 + i, NodePort: 30080 + i})
		}
		return out
	}
	nodePort := func(port int32) v1alpha2.Address {
		return v1alpha2.Address{Type: "NodePort", Value: fmt.Sprint(30000 + port), Port: port}
	}
	for name, test := range map[string]struct {
		state live.Observed
		want  []v1alpha2.Address
	}{
		"no Service": {},
		"ClusterIP":  {state: live.Observed{Service: []corev1.ServicePort{{Port: 80}}}},
		"NodePort":   {live.Observed{Service: ports(2)}, []v1alpha2.Address{nodePort(80), nodePort(81)}},
		"load balancer": {
			live.Observed{Service: ports(1), Balancer: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}, {Hostname: "lb.example.com"}, {}}},
			[]v1alpha2.Address{{Type: "LoadBalancerIP", Value: "192.0.2.1"}, {Type: "LoadBalancerHostname", Value: "lb.example.com"}, nodePort(80)},
		},
		"Ingress": {
			live.Observed{Service: []corev1.ServicePort{{Port: 80}}, Addresses: []string{"192.0.2.2"}},
			[]v1alpha2.Address{{Type: "Ingress", Value: "192.0.2.2"}},
		},
	} {
		if diff := cmp.Diff(test.want, addressesOf(test.state)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if n := len(addressesOf(live.Observed{Service: ports(32)})); n != maxAddresses {
		t.Errorf("%d addresses", n)
	}
}
