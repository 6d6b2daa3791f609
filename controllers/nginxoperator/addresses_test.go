package nginxoperator

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/example/nginx-operator/api/v1alpha2"
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
		{newObject(onPort(80)), nil, "http://web.shop.svc"},
		{newObject(onPort(8080)), nil, "http://web.shop.svc:8080"},
		{newObject(onPort(443)), nil, "http://web.shop.svc:443"},
		{newObject(ports("http", "80 to 8080")), nil, "http://web.shop.svc"},
		{newObject(only(443)), nil, "https://web.shop.svc"},
		{newObject(only(80)), nil, "https://web.shop.svc:80"},
		{newObject(onPort(80)), []corev1.LoadBalancerIngress{ip, host}, "http://192.0.2.1"},
		{newObject(only(443)), []corev1.LoadBalancerIngress{host, ip}, "https://lb.example.com"},
		{newObject(onPort(80)), []corev1.LoadBalancerIngress{six}, "http://[2001:db8::1]"},
		{newObject(onPort(8080)), []corev1.LoadBalancerIngress{six}, "http://[2001:db8::1]:8080"},
	} {
		state := observed{service: desiredService(test.object, inputs{}).Spec.Ports, balancer: test.ingress}
		if got, found := instanceURL(test.object, state); got != test.want || !found {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
	if got, found := instanceURL(newObject(onPort(80)), observed{}); found {
		t.Errorf("without a Service: %s", got)
	}
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
		state observed
		want  []v1alpha2.Address
	}{
		"no Service": {},
		"ClusterIP":  {state: observed{service: []corev1.ServicePort{{Port: 80}}}},
		"NodePort":   {observed{service: ports(2)}, []v1alpha2.Address{nodePort(80), nodePort(81)}},
		"load balancer": {
			observed{service: ports(1), balancer: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}, {Hostname: "lb.example.com"}, {}}},
			[]v1alpha2.Address{{Type: "LoadBalancerIP", Value: "192.0.2.1"}, {Type: "LoadBalancerHostname", Value: "lb.example.com"}, nodePort(80)},
		},
		"Ingress": {
			observed{service: []corev1.ServicePort{{Port: 80}}, addresses: []string{"192.0.2.2"}},
			[]v1alpha2.Address{{Type: "Ingress", Value: "192.0.2.2"}},
		},
	} {
		if diff := cmp.Diff(test.want, addressesOf(test.state)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if n := len(addressesOf(observed{service: ports(32)})); n != maxAddresses {
		t.Errorf("%d addresses", n)
	}
}

// A reconcile is made when a load balancer gets, changes or loses an address, and for nothing else of the status.
func TestAddressesThatChange(t *testing.T) {
	with := func(ingress ...corev1.LoadBalancerIngress) *corev1.Service {
		return &corev1.Service{Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}}}
	}
	one, other := corev1.LoadBalancerIngress{IP: "192.0.2.1"}, corev1.LoadBalancerIngress{Hostname: "lb.example.com"}
	for name, test := range map[string]struct {
		before, after *corev1.Service
		want          bool
	}{
		"none":   {with(), with(), false},
		"same":   {with(one, other), with(one, other), false},
		"gets":   {with(), with(one), true},
		"loses":  {with(one), with(), true},
		"other":  {with(one), with(other), true},
		"second": {with(one), with(one, other), true},
	} {
		test.after.ResourceVersion = "2"
		changed := childChanged(func(client.Object) bool { return true })
		if got := changed.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: passed %t", name, got)
		}
	}
}
