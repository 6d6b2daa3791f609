package operand

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/internal/wellknown"
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
func IsEntrance(child client.Object) bool { return slices.Contains(EntranceKinds(), kindOf(child)) }

// EntranceKinds returns the kinds of the children of the entrance.
func EntranceKinds() []string {
	return append([]string{"Service", "NetworkPolicy", "Ingress"}, optionalNames()...)
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
	// Interim means that a port of the Service has a temporary name. Once the Service is written,
	// its ports can get their own names.
	Interim bool
	// HeldRoute means that the Ingress or HTTPRoute waits for the endpoints of another number.
	HeldRoute bool
}

// Compose returns the children of a declaration of Pods with the entrance of a declaration, which
// can be the same, for the Pods that run. The arguments are the children of these declarations
// while no other Pods run. It changes a copy of them.
//
// While Pods of several declarations run, the Service has the numbers of the entrance, those that
// ready new Pods serve, and those that Pods of an earlier declaration still serve. The
// NetworkPolicy admits clients to the same Pods. The Ingress or HTTPRoute has a number that ready
// Pods serve.
func Compose(pods, entrance []client.Object, now Running) Composed {
	old := partsOf(entrance)
	coming := comingParts(pods, old)
	out := Composed{Children: WithEntrance(pods, entrance)}
	out.Ports, out.Interim = servedPorts(old.service.Spec.Ports, coming.service.Spec.Ports, now)
	backend, held := backendOf(old, coming, now)
	out.HeldRoute = held
	version := coming.deployment.Labels[wellknown.LabelVersion]
	for i, child := range out.Children {
		if _, isDeployment := child.(*appsv1.Deployment); !isDeployment {
			child = child.DeepCopyObject().(client.Object)
			setVersion(child, version)
			out.Children[i] = child
		}
		switch child := child.(type) {
		case *corev1.Service:
			child.Spec.Ports, child.ResourceVersion = out.Ports, now.ServiceVersion
		case *networkingv1.NetworkPolicy:
			child.Spec.Ingress = rulesOf(old, coming, out.Ports, now)
		case *networkingv1.Ingress:
			for _, port := range ingressBackends(child) {
				port.Number = backend
			}
		case *gatewayv1.HTTPRoute:
			for _, port := range routeBackends(child) {
				port.Port = ptr.To(backend)
			}
		case *appsv1.Deployment:
			if movesRoute(old, coming) {
				out.Children[i] = settlingRoute(child)
			}
		}
	}
	return out
}

// setVersion sets the label with the version of the Pods, or removes it for "".
func setVersion(child client.Object, version string) {
	labels := maps.Clone(child.GetLabels())
	if version == "" {
		delete(labels, wellknown.LabelVersion)
	} else if labels != nil {
		labels[wellknown.LabelVersion] = version
	}
	child.SetLabels(labels)
}

// parts has the children of a declaration that the composition depends on. A missing one is empty,
// or nil if it is optional.
type parts struct {
	service    *corev1.Service
	deployment *appsv1.Deployment
	policy     *networkingv1.NetworkPolicy
	ingress    *networkingv1.Ingress
	route      *gatewayv1.HTTPRoute
	// preferred is the number of the Ingress or HTTPRoute if the declaration has neither, or 0.
	preferred int32
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

// comingParts returns the parts of a declaration of Pods. If it has no Service, its ports are those
// of the Pods, and the Ingress or HTTPRoute of the entrance stays as long as they serve it.
func comingParts(pods []client.Object, entrance parts) parts {
	out := partsOf(pods)
	if slices.ContainsFunc(pods, func(child client.Object) bool { return kindOf(child) == "Service" }) {
		return out
	}
	out.preferred = entrance.backend()
	for _, port := range out.containerPorts() {
		if port.Name != HealthPort {
			out.service.Spec.Ports = append(out.service.Spec.Ports, corev1.ServicePort{
				Name: port.Name, Port: port.Number, TargetPort: intstr.FromString(port.Name), Protocol: corev1.ProtocolTCP,
			})
		}
	}
	return out
}

// containerPorts returns the ports of nginx in the Pod template.
func (p parts) containerPorts() []ContainerPort {
	template := &p.deployment.Spec.Template
	return ContainerPortsOf(template.Annotations, &template.Spec)
}
