package operatormanager

import (
	networkingv1 "k8s.io/api/networking/v1"
)

// maxPoints is how many load balancers of an Ingress are kept.
const maxPoints = 16

// slimIngress keeps the port that the Ingress asks for, and its addresses.
func slimIngress(in any) (any, error) {
	ingress, ok := in.(*networkingv1.Ingress)
	if !ok {
		return in, nil
	}
	slimChild(ingress, &ingress.ObjectMeta)
	spec := networkingv1.IngressSpec{}
	if number := BackendPort(ingress); number != 0 {
		spec.DefaultBackend = backendOn(number)
	}
	var points []networkingv1.IngressLoadBalancerIngress
	for _, point := range ingress.Status.LoadBalancer.Ingress[:min(len(ingress.Status.LoadBalancer.Ingress), maxPoints)] {
		if len(point.IP) <= maxName && len(point.Hostname) <= maxName {
			points = append(points, networkingv1.IngressLoadBalancerIngress{IP: point.IP, Hostname: point.Hostname})
		}
	}
	ingress.Spec, ingress.Status.LoadBalancer.Ingress = spec, points
	return in, nil
}

func backendOn(number int32) *networkingv1.IngressBackend {
	return &networkingv1.IngressBackend{
		Service: &networkingv1.IngressServiceBackend{Port: networkingv1.ServiceBackendPort{Number: number}},
	}
}

// BackendPort returns the number of the Service's port that the first path of an Ingress asks for, 0 where it asks for none. It says so
// of what the cache keeps in its place as well.
func BackendPort(ingress *networkingv1.Ingress) int32 {
	backend := ingress.Spec.DefaultBackend
	if rules := ingress.Spec.Rules; len(rules) > 0 && rules[0].HTTP != nil && len(rules[0].HTTP.Paths) > 0 {
		backend = &rules[0].HTTP.Paths[0].Backend
	}
	if backend == nil || backend.Service == nil {
		return 0
	}
	return backend.Service.Port.Number
}
