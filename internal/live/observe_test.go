package live

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
)

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
