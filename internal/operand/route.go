package operand

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// routeSettleSeconds is minReadySeconds of a rollout that moves the Ingress or HTTPRoute, so that
// the earlier Pods serve until it has moved.
const routeSettleSeconds = 5

// mainPort returns the number of the first port without TLS, or else of the first port.
func mainPort(spec *v1alpha2.NginxOperatorSpec) int32 {
	ports := defaults.ServicePorts(spec)
	return ports[max(0, slices.IndexFunc(ports, func(port defaults.ServicePort) bool { return !port.TLS }))].Number
}

// backendOf returns the number of the Ingress or HTTPRoute, and whether it waits for the endpoints
// of another one. It stays while ready Pods serve it, and none serve the other one, or the other
// one has no endpoints yet.
func backendOf(entrance, pods parts, now Running) (number int32, held bool) {
	wanted := wantedBackend(entrance, pods, now)
	if now.servesExposed() && (!now.ready.Has(wanted) || now.unreached.Has(wanted)) {
		return now.exposed, now.ready.Has(wanted) && now.exposed != wanted
	}
	return wanted, false
}

// wantedBackend returns the main port of the new Pods once one is ready, or that of the entrance.
func wantedBackend(entrance, pods parts, now Running) int32 {
	if number := pods.backend(); now.ready.Has(number) {
		return number
	}
	return entrance.backend()
}

// RouteMovesTo returns the number to which the live Ingress or HTTPRoute moves now, and whether it
// moves while clients use its current number. The arguments are those of Compose.
func RouteMovesTo(pods, entrance []client.Object, now Running) (number int32, moves bool) {
	old := partsOf(entrance)
	number = wantedBackend(old, comingParts(pods, old), now)
	return number, number != now.exposed && now.servesExposed() && now.ready.Has(number)
}

// backend returns the number that the Ingress or HTTPRoute has while no other Pods run. If neither
// is declared, it is the first port without TLS.
func (p parts) backend() int32 {
	if p.ingress != nil {
		for _, port := range ingressBackends(p.ingress) {
			return port.Number
		}
	}

	if p.route != nil {
		for _, port := range routeBackends(p.route) {
			return ptr.Deref(port.Port, 0)
		}
	}

	ports := p.service.Spec.Ports
	if len(ports) == 0 || Serves(ports, p.preferred) {
		return p.preferred
	}
	return ports[max(0, slices.IndexFunc(ports, func(port corev1.ServicePort) bool { return !HasTLS(port) }))].Port
}

// HasTLS reports whether a port of the Service has TLS, as far as its name and protocol show that.
func HasTLS(port corev1.ServicePort) bool {
	return ptr.Deref(port.AppProtocol, "") == "https" || strings.HasPrefix(port.Name, certificatePort)
}

// ingressBackends returns the ports of an Ingress that are ports of the instance's Service.
func ingressBackends(ingress *networkingv1.Ingress) (ports []*networkingv1.ServiceBackendPort) {
	add := func(backend *networkingv1.IngressBackend) {
		if backend != nil && backend.Service != nil && backend.Service.Name == ingress.Name && backend.Service.Port.Number != 0 {
			ports = append(ports, &backend.Service.Port)
		}
	}

	for i := range ingress.Spec.Rules {
		if rule := ingress.Spec.Rules[i].HTTP; rule != nil {
			for j := range rule.Paths {
				add(&rule.Paths[j].Backend)
			}
		}
	}

	add(ingress.Spec.DefaultBackend)
	return ports
}

// routeBackends returns the references of an HTTPRoute to the instance's Service.
func routeBackends(route *gatewayv1.HTTPRoute) (references []*gatewayv1.BackendObjectReference) {
	for i := range route.Spec.Rules {
		for j := range route.Spec.Rules[i].BackendRefs {
			reference := &route.Spec.Rules[i].BackendRefs[j].BackendObjectReference
			if string(reference.Name) == route.Name && ptr.Deref(reference.Kind, "Service") == "Service" {
				references = append(references, reference)
			}
		}
	}
	return references
}

// servesExposed reports whether ready Pods serve the number of the Ingress or HTTPRoute.
func (now Running) servesExposed() bool {
	return now.ready.Has(now.exposed) && Serves(now.Service, now.exposed)
}

// WithoutEndpoints returns the running ports with a number that has no endpoints yet.
func (now Running) WithoutEndpoints(number int32) Running {
	now.unreached = sets.New(number)
	return now
}
