package live

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/operand"
)

// Observed is the part of the live state from which the status is computed.
type Observed struct {
	// Deployment is the Deployment of the object, or nil if it does not exist.
	Deployment *appsv1.Deployment
	// Pods are the Pods of the object that are not being deleted, sorted by name.
	Pods []*corev1.Pod
	// Service has the ports of the object's Service, or nil if it does not exist.
	Service []corev1.ServicePort
	// Addresses are those of the object's Ingress, and Balancer those of the Service's load balancer.
	Addresses []string
	Balancer  []corev1.LoadBalancerIngress
	// Route is the object's HTTPRoute, which is nil or empty if it does not exist.
	Route *gatewayv1.HTTPRoute
	// Related are the declared and formerly declared children that exist and belong to the object.
	Related []v1alpha2.RelatedObject
}

// Observe returns the part of the state from which the status is computed.
func (s State) Observe(declared []client.Object) Observed {
	service := s.Service()
	out := Observed{
		Deployment: s.Deployment(),
		Service:    service.Spec.Ports,
		Balancer:   cached.BalancerAddresses(service),
		Addresses:  ingressAddresses(s.ingress()),
		Route:      s.httpRoute(),
		Related:    s.related(slices.Concat(References(declared), s.object.Status.RelatedObjects)),
	}
	if out.Deployment != nil {
		out.Pods = s.remainingPods()
	}
	return out
}

// related returns the given children that exist and belong to the object, each once. A child of a
// kind that could not be read counts as existing.
func (s State) related(named []v1alpha2.RelatedObject) []v1alpha2.RelatedObject {
	var out []v1alpha2.RelatedObject
	for _, related := range named {
		child := operand.New(related.Kind)
		if child == nil || slices.Contains(out, related) {
			continue
		}

		child.SetName(related.Name)
		existing, _ := s.Find(child)
		if existing == nil && s.unread[related.Kind] != nil || existing != nil && s.owns(existing) {
			out = append(out, related)
		}
	}

	return out
}

// Running returns the ports of the running Pods and of the live Service.
func (s State) Running() (operand.Running, error) {
	service := s.Service()
	exposed := cmp.Or(cached.RoutePort(s.httpRoute()), cached.BackendPort(s.ingress()))
	out := operand.NewRunning(service.Spec.Ports, exposed, s.Deployment(), allOf[*appsv1.ReplicaSet](s), s.Pods())
	out.ServiceVersion = service.ResourceVersion
	return out, s.errorOf("ReplicaSet")
}

// ingressAddresses returns the addresses and host names of an Ingress that is not being deleted.
func ingressAddresses(ingress *networkingv1.Ingress) []string {
	var out []string
	if ingress.DeletionTimestamp != nil {
		return nil
	}

	for _, point := range ingress.Status.LoadBalancer.Ingress {
		for _, address := range []string{point.IP, point.Hostname} {
			if address != "" {
				out = append(out, address)
			}
		}
	}

	return out
}

// References returns the references to children, as in status.relatedObjects.
func References(children []client.Object) []v1alpha2.RelatedObject {
	var out []v1alpha2.RelatedObject
	for _, child := range children {
		apiVersion, kind := child.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		out = append(out, v1alpha2.RelatedObject{APIVersion: apiVersion, Kind: kind, Name: child.GetName()})
	}
	return out
}
