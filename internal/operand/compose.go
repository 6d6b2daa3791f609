package operand

import (
	"cmp"
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

// WithEntrance returns the children of a declaration with the entrance of another one.
func WithEntrance(children, other []client.Object) []client.Object {
	out := slices.DeleteFunc(slices.Clone(children), IsEntrance)
	for _, child := range other {
		if IsEntrance(child) {
			out = append(out, child)
		}
	}

	slices.SortStableFunc(out, func(a, b client.Object) int { return rankOf(KindOf(a)) - rankOf(KindOf(b)) })
	return out
}

// Composed are the children of an instance while its Pods change.
type Composed struct {
	// Children are in the order in which they depend on each other.
	Children []client.Object
	// Ports are the ports of the Service.
	Ports []corev1.ServicePort
	// Interim means that a port has a temporary name until the Service is written.
	Interim bool
	// HeldRoute means that the Ingress or HTTPRoute waits for the endpoints of another number.
	HeldRoute bool
}

// Compose returns the children of a declaration of Pods with the entrance of a declaration, which
// can be the same, for the Pods that run. The arguments, which do not change, are the children of
// these declarations while no other Pods run.
//
// While Pods of several declarations run, the Service has the numbers of the entrance, those that
// ready new Pods serve, and those that earlier Pods still serve. The NetworkPolicy admits clients
// to the same Pods. The Ingress or HTTPRoute has a number that ready Pods serve.
func Compose(pods, entrance []client.Object, now Running) Composed {
	old := partsOf(entrance)
	coming := comingParts(pods, old)
	out := Composed{Children: WithEntrance(pods, entrance)}
	out.Ports, out.Interim = servedPorts(old.service.Spec.Ports, coming.service.Spec.Ports, now)
	backend, held := backendOf(old, coming, now)
	out.HeldRoute = held
	version := coming.deployment.Labels[wellknown.LabelVersion]
	for i, child := range out.Children {
		child = child.DeepCopyObject().(client.Object)
		setVersion(child, version)
		out.Children[i] = child

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
			if (old.ingress != nil || old.route != nil) && old.backend() != coming.backend() {
				settles := min(routeSettleSeconds, ptr.Deref(child.Spec.ProgressDeadlineSeconds, 0)/4)
				child.Spec.MinReadySeconds = max(child.Spec.MinReadySeconds, settles)
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

// parts has the children of a declaration that the composition depends on.
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
	return parts{
		service:    cmp.Or(ChildOf[*corev1.Service](children), &corev1.Service{}),
		deployment: cmp.Or(ChildOf[*appsv1.Deployment](children), &appsv1.Deployment{}),
		policy:     ChildOf[*networkingv1.NetworkPolicy](children),
		ingress:    ChildOf[*networkingv1.Ingress](children),
		route:      ChildOf[*gatewayv1.HTTPRoute](children),
	}
}

// comingParts returns the parts of a declaration of Pods. If it has no Service, its ports are those
// of the Pods, and the Ingress or HTTPRoute of the entrance stays as long as they serve it.
func comingParts(pods []client.Object, entrance parts) parts {
	out := partsOf(pods)
	if ChildOf[*corev1.Service](pods) != nil {
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
