package operand

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// order has the kinds of children in the order in which they depend on each other.
var order = append([]string{
	"ConfigMap", "Service", "NetworkPolicy", "Deployment", "PodDisruptionBudget", "HorizontalPodAutoscaler", "Ingress",
}, optionalNames()...)

func optionalNames() (out []string) {
	for _, child := range OptionalKinds {
		out = append(out, child.Kind)
	}
	return out
}

// IsEntrance reports whether a child belongs to the entrance of an instance: what clients and
// Prometheus reach the Pods through.
func IsEntrance(child client.Object) bool {
	kind := kindOf(child)
	return kind == "Service" || kind == "NetworkPolicy" || kind == "Ingress" || slices.Contains(optionalNames(), kind)
}

// WithEntrance returns the children of a declaration with the entrance of another one.
func WithEntrance(children, other []client.Object) []client.Object {
	out := slices.DeleteFunc(slices.Clone(children), IsEntrance)
	for _, child := range other {
		if IsEntrance(child) {
			out = append(out, child)
		}
	}
	slices.SortStableFunc(out, func(a, b client.Object) int {
		return slices.Index(order, kindOf(a)) - slices.Index(order, kindOf(b))
	})
	return out
}

func kindOf(child client.Object) string { return child.GetObjectKind().GroupVersionKind().Kind }

// Composed are the children of an instance while its Pods change.
type Composed struct {
	// Children are all children, in the order in which they depend on each other.
	Children []client.Object
	// Ports are the ports of the Service.
	Ports []corev1.ServicePort
	// Interim means that a port of the Service has a temporary name. Once the Service is written, its ports can get
	// their own names.
	Interim bool
	// HeldRoute means that the Ingress or HTTPRoute waits for the endpoints of another number.
	HeldRoute bool
}

// Compose returns the children of a declaration of Pods with the entrance of a declaration, which can be
// the same, for the Pods that run. The arguments are the children of these declarations while no other
// Pods run. It changes a copy of them.
//
// While Pods of several declarations run, the Service has the numbers of the entrance, those that ready
// new Pods serve, and those that Pods of an earlier declaration still serve. The NetworkPolicy admits
// clients to the same Pods. The Ingress or HTTPRoute has a number that ready Pods serve.
func Compose(pods, entrance []client.Object, now Running) Composed {
	old, coming := partsOf(entrance), partsOf(pods)
	out := Composed{Children: WithEntrance(pods, entrance)}
	out.Ports, out.Interim = servedPorts(old.service.Spec.Ports, coming.service.Spec.Ports, now)
	backend, held := backendOf(old, coming, now)
	out.HeldRoute = held
	for i, child := range out.Children {
		switch child := child.(type) {
		case *corev1.Service:
			service := child.DeepCopy()
			service.Spec.Ports, service.ResourceVersion = out.Ports, now.ServiceVersion
			out.Children[i] = service
		case *networkingv1.NetworkPolicy:
			policy := child.DeepCopy()
			policy.Spec.Ingress = rulesOf(old, coming, out.Ports, now)
			out.Children[i] = policy
		case *networkingv1.Ingress:
			ingress := child.DeepCopy()
			for _, port := range ingressBackends(ingress) {
				port.Number = backend
			}
			out.Children[i] = ingress
		case *gatewayv1.HTTPRoute:
			route := child.DeepCopy()
			for _, port := range routeBackends(route) {
				port.Port = ptr.To(backend)
			}
			out.Children[i] = route
		case *appsv1.Deployment:
			if movesRoute(old, coming) {
				out.Children[i] = settlingRoute(child)
			}
		}
	}
	return out
}

// parts has the children of a declaration that the composition depends on. A missing one is empty, or
// nil if it is optional.
type parts struct {
	service    *corev1.Service
	deployment *appsv1.Deployment
	policy     *networkingv1.NetworkPolicy
	ingress    *networkingv1.Ingress
	route      *gatewayv1.HTTPRoute
}

func partsOf(children []client.Object) parts {
	out := parts{service: &corev1.Service{}, deployment: &appsv1.Deployment{}}
	for _, child := range children {
		switch child := child.(type) {
		case *corev1.Service:
			out.service = child
		case *appsv1.Deployment:
			out.deployment = child
		case *networkingv1.NetworkPolicy:
			out.policy = child
		case *networkingv1.Ingress:
			out.ingress = child
		case *gatewayv1.HTTPRoute:
			out.route = child
		}
	}
	return out
}

// containerPorts returns the ports of nginx in the Pod template.
func (p parts) containerPorts() []ContainerPort {
	template := &p.deployment.Spec.Template
	return ContainerPortsOf(template.Annotations, &template.Spec)
}

// FixedNames returns running Pods that give the ports of these specs names that depend only on their
// numbers. With them, Pod templates can be compared: the names of container ports otherwise depend on
// the Pods that run.
func FixedNames(specs ...*v1alpha2.NginxOperatorSpec) Running {
	var out Running
	for _, spec := range specs {
		for _, port := range defaults.ServicePorts(spec) {
			out.Containers = append(out.Containers, ContainerPort{
				Name: fmt.Sprintf("p-%d", port.Number), Number: port.Number, Listens: port.Listens,
			})
		}
	}
	return out
}
