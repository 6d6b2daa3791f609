package objectcache

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/example/nginx-operator/internal/cached"
)

// maxBalancers is the maximum number of load balancers of an Ingress in the cache.
const maxBalancers = 16

// slimIngress keeps the port of the backend, and the addresses.
func slimIngress(ingress *networkingv1.Ingress) {
	slimChild(ingress)
	spec := slimRules(ingress)
	var points []networkingv1.IngressLoadBalancerIngress
	for _, point := range ingress.Status.LoadBalancer.Ingress[:min(len(ingress.Status.LoadBalancer.Ingress), maxBalancers)] {
		if len(point.IP) <= maxName && len(point.Hostname) <= maxName {
			points = append(points, networkingv1.IngressLoadBalancerIngress{IP: point.IP, Hostname: point.Hostname})
		}
	}

	ingress.Spec, ingress.Status.LoadBalancer.Ingress = spec, points
}

// slimRules keeps the port of the backend, in the field from which BackendPort reads it.
func slimRules(ingress *networkingv1.Ingress) networkingv1.IngressSpec {
	number := cached.BackendPort(ingress)
	switch {
	case number == 0:
		return networkingv1.IngressSpec{}
	case cached.FirstPath(ingress) == nil:
		return networkingv1.IngressSpec{DefaultBackend: backendOn(number)}
	}

	paths := []networkingv1.HTTPIngressPath{{Backend: *backendOn(number)}}
	return networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
		IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: paths}},
	}}}
}

func backendOn(number int32) *networkingv1.IngressBackend {
	return &networkingv1.IngressBackend{
		Service: &networkingv1.IngressServiceBackend{Port: networkingv1.ServiceBackendPort{Number: number}},
	}
}
