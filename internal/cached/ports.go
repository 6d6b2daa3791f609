package cached

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// maxIngress is the maximum number of load balancer addresses in the cache and in our status.
const maxIngress = 16

// BalancerAddresses returns the addresses of a Service's load balancer, or nil if the Service
// requests none: one that was of type LoadBalancer can still have addresses.
func BalancerAddresses(service *corev1.Service) []corev1.LoadBalancerIngress {
	all := service.Status.LoadBalancer.Ingress
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}

	var out []corev1.LoadBalancerIngress
	for _, at := range all[:min(len(all), maxIngress)] {
		if max(len(at.IP), len(at.Hostname)) <= validation.DNS1123SubdomainMaxLength {
			out = append(out, corev1.LoadBalancerIngress{IP: at.IP, Hostname: at.Hostname})
		}
	}

	return slices.Clip(out)
}

// BackendPort returns the port of the Service in the first path of an Ingress, or 0.
func BackendPort(ingress *networkingv1.Ingress) int32 {
	backend := ingress.Spec.DefaultBackend
	if path := FirstPath(ingress); path != nil {
		backend = &path.Backend
	}
	if backend == nil || backend.Service == nil {
		return 0
	}
	return backend.Service.Port.Number
}

// FirstPath returns the first path of an Ingress, or nil if its first rule has none.
func FirstPath(ingress *networkingv1.Ingress) *networkingv1.HTTPIngressPath {
	rules := ingress.Spec.Rules
	if len(rules) == 0 || rules[0].HTTP == nil || len(rules[0].HTTP.Paths) == 0 {
		return nil
	}
	return &rules[0].HTTP.Paths[0]
}

// RoutePort returns the port of the Service in the first rule of an HTTPRoute, or 0.
func RoutePort(route *gatewayv1.HTTPRoute) int32 {
	if rules := route.Spec.Rules; len(rules) > 0 && len(rules[0].BackendRefs) > 0 {
		return ptr.Deref(rules[0].BackendRefs[0].Port, 0)
	}
	return 0
}
