package objectcache

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/internal/cached"
)

const (
	// maxParents is the maximum number of parent statuses of an HTTPRoute in the cache. It is also
	// the maximum number of Gateways in a spec.
	maxParents = 8
	// maxMessage and maxReason bound the fields of a condition.
	maxMessage, maxReason = 256, 64
)

// slimHTTPRoute keeps the port of the backend, and the conditions that Gateway controllers set.
func slimHTTPRoute(route *gatewayv1.HTTPRoute) {
	slimChild(route)
	spec := gatewayv1.HTTPRouteSpec{}
	if number := cached.RoutePort(route); number != 0 {
		spec.Rules = ruleTo(number)
	}

	var parents []gatewayv1.RouteParentStatus
	for _, parent := range route.Status.Parents {
		if len(parents) == maxParents {
			break
		}
		if kept, ok := slimParent(parent); ok {
			parents = append(parents, kept)
		}
	}

	route.Spec, route.Status.Parents = spec, parents
}

// slimParent keeps the conditions Accepted and ResolvedRefs of a Gateway.
func slimParent(parent gatewayv1.RouteParentStatus) (gatewayv1.RouteParentStatus, bool) {
	of := parent.ParentRef
	namespace, section := ptr.Deref(of.Namespace, ""), ptr.Deref(of.SectionName, "")
	if ptr.Deref(of.Group, gatewayv1.GroupName) != gatewayv1.GroupName || ptr.Deref(of.Kind, "Gateway") != "Gateway" ||
		max(len(of.Name), len(namespace), len(section)) > maxName {
		return gatewayv1.RouteParentStatus{}, false
	}

	out := gatewayv1.RouteParentStatus{ParentRef: gatewayv1.ParentReference{
		Name: of.Name, Namespace: of.Namespace, SectionName: of.SectionName, Port: of.Port,
	}}

	for _, about := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
		condition := meta.FindStatusCondition(parent.Conditions[:min(len(parent.Conditions), maxConditions)], string(about))
		if condition == nil {
			continue
		}

		kept := metav1.Condition{
			Type: string(about), Status: condition.Status, Reason: condition.Reason, Message: condition.Message,
			ObservedGeneration: condition.ObservedGeneration,
		}

		cut(maxReason, &kept.Reason)
		cut(maxMessage, &kept.Message)
		out.Conditions = append(out.Conditions, kept)
	}

	return out, true
}

func ruleTo(number int32) []gatewayv1.HTTPRouteRule {
	backend := gatewayv1.HTTPBackendRef{}
	backend.Port = &number
	return []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{backend}}}
}

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

// slimService keeps the names and numbers of the ports, and the addresses of the load balancer.
func slimService(service *corev1.Service) {
	slimChild(service)
	spec := corev1.ServiceSpec{}
	for _, port := range service.Spec.Ports[:min(len(service.Spec.Ports), cached.MaxPorts)] {
		kept := corev1.ServicePort{Name: port.Name, Port: port.Port, NodePort: port.NodePort}
		if port.AppProtocol != nil && len(*port.AppProtocol) <= maxName {
			kept.AppProtocol = port.AppProtocol
		}
		spec.Ports = append(spec.Ports, kept)
	}

	addresses := cached.BalancerAddresses(service)
	if addresses != nil {
		spec.Type = corev1.ServiceTypeLoadBalancer
	}

	service.Spec, service.Status = spec, corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: addresses}}
}

// slimEndpointSlice keeps the ports and the name of the Service.
func slimEndpointSlice(slice *discoveryv1.EndpointSlice) {
	labels := pick(slice.Labels, maxName, discoveryv1.LabelServiceName, discoveryv1.LabelManagedBy)
	slimChild(slice)
	slice.Labels = labels
	slice.Endpoints, slice.Ports = nil, slice.Ports[:min(len(slice.Ports), cached.MaxPorts)]
}
