package operand

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// backendPort returns the port number that the Ingress or HTTPRoute references. It stays while ready
// Pods serve the current number, and no ready Pod serves the other one, or it has no endpoints yet.
func backendPort(entrance *v1alpha2.NginxOperatorSpec, in Inputs) int32 {
	now, wanted := in.Running, wantedBackend(entrance, in)
	if now.servesExposed() && (!now.ready.Has(wanted) || now.unreached.Has(wanted)) {
		return now.exposed
	}
	return wanted
}

// wantedBackend returns the main port of the new Pods once one of them is ready, and otherwise that of
// the entrance.
func wantedBackend(entrance *v1alpha2.NginxOperatorSpec, in Inputs) int32 {
	if in.Pods != nil && in.Running.ready.Has(mainPort(in.Pods)) {
		return mainPort(in.Pods)
	}
	return mainPort(entrance)
}

// mainPort returns the number of the first port without TLS, or else of the first port.
func mainPort(spec *v1alpha2.NginxOperatorSpec) int32 {
	ports := defaults.ServicePorts(spec)
	return ports[max(0, slices.IndexFunc(ports, func(port defaults.ServicePort) bool { return !port.TLS }))].Number
}

// MovesRoute reports whether Pods move the Ingress or HTTPRoute of an entrance to another number.
func MovesRoute(entrance, pods *v1alpha2.NginxOperatorSpec) bool {
	return (HasIngress(entrance) || HasHTTPRoute(entrance)) && mainPort(entrance) != mainPort(pods)
}

// RouteMovesTo returns the number to which the live Ingress or HTTPRoute moves now, and whether it
// moves while clients use its current number.
func RouteMovesTo(entrance *v1alpha2.NginxOperatorSpec, in Inputs) (number int32, moves bool) {
	number = wantedBackend(entrance, in)
	return number, number != in.Running.exposed && in.Running.servesExposed() && in.Running.ready.Has(number)
}

// HoldsRoute reports whether the Ingress or HTTPRoute waits for the endpoints of another number.
func HoldsRoute(entrance *v1alpha2.NginxOperatorSpec, in Inputs) bool {
	number, moves := RouteMovesTo(entrance, in)
	return moves && in.Running.unreached.Has(number)
}

// servesExposed reports whether ready Pods serve the number that the Ingress or HTTPRoute references.
func (now Running) servesExposed() bool {
	return now.ready.Has(now.exposed) && Serves(now.Service, now.exposed)
}

// WithoutEndpoints returns the running ports with a number of the Service that has no endpoints yet.
func (now Running) WithoutEndpoints(number int32) Running {
	now.unreached = sets.New(number)
	return now
}
