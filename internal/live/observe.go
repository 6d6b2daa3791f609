package live

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
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

// related returns the given children that exist, each once. An unread kind counts as existing.
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

// Deployment returns the Deployment of the object, or nil if it does not exist.
func (s State) Deployment() *appsv1.Deployment { return childOf[*appsv1.Deployment](s) }

// Service returns the Service of the object, or an empty one if it does not exist.
func (s State) Service() *corev1.Service {
	return cmp.Or(childOf[*corev1.Service](s), &corev1.Service{})
}

// Owned returns the children of a kind that are not being deleted.
func (s State) Owned(kind string) []client.Object {
	return slices.DeleteFunc(slices.Clone(s.objects), func(child client.Object) bool {
		return operand.KindOf(child) != kind || !s.owns(child)
	})
}

// Bridges returns the EndpointSlices that the operator has written for the object's Service.
func (s State) Bridges() ([]*discoveryv1.EndpointSlice, error) {
	return allOf[*discoveryv1.EndpointSlice](s), s.errorOf("EndpointSlice")
}

// HasRevision reports whether a ControllerRevision of the object exists.
func (s State) HasRevision(name string) (bool, error) {
	exists := slices.ContainsFunc(allOf[*appsv1.ControllerRevision](s), func(revision *appsv1.ControllerRevision) bool {
		return revision.Name == name
	})
	return exists, s.errorOf(revisionKind)
}

// Pods returns all Pods with the labels of the object.
func (s State) Pods() []*corev1.Pod { return allOf[*corev1.Pod](s) }

// ReplicaSets returns all ReplicaSets with the labels of the object.
func (s State) ReplicaSets() ([]*appsv1.ReplicaSet, error) {
	return allOf[*appsv1.ReplicaSet](s), s.errorOf("ReplicaSet")
}

// NewestReplicaSet has the Pods of the newest ReplicaSet of a Deployment.
type NewestReplicaSet struct {
	// Known reports whether the cache has the ReplicaSet.
	Known bool
	// Began is the time of the first rollout of its Pod template.
	Began time.Time
	// Pods are the Pods of the ReplicaSet that are not being deleted.
	Pods []*corev1.Pod
}

// NewestPods returns the newest ReplicaSet of the Deployment, which must exist, and its Pods.
func (s State) NewestPods() (NewestReplicaSet, error) {
	deployment := s.Deployment()
	number := deployment.Annotations[wellknown.AnnotationRevision]
	for _, set := range allOf[*appsv1.ReplicaSet](s) {
		if metav1.IsControlledBy(set, deployment) && set.Annotations[wellknown.AnnotationRevision] == number {
			pods := slices.DeleteFunc(s.remainingPods(), func(pod *corev1.Pod) bool { return !metav1.IsControlledBy(pod, set) })
			return NewestReplicaSet{Known: true, Began: set.CreationTimestamp.Time, Pods: pods}, nil
		}
	}

	return NewestReplicaSet{}, s.errorOf("ReplicaSet")
}

func (s State) remainingPods() []*corev1.Pod {
	out := slices.DeleteFunc(s.Pods(), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (s State) ingress() *networkingv1.Ingress {
	return cmp.Or(childOf[*networkingv1.Ingress](s), &networkingv1.Ingress{})
}

func (s State) httpRoute() *gatewayv1.HTTPRoute {
	return cmp.Or(childOf[*gatewayv1.HTTPRoute](s), &gatewayv1.HTTPRoute{})
}

func childOf[T client.Object](s State) (none T) {
	for _, child := range allOf[T](s) {
		if child.GetName() == s.object.Name && metav1.IsControlledBy(child, s.object) {
			return child
		}
	}
	return none
}

func allOf[T client.Object](s State) []T {
	var children []T
	for _, object := range s.objects {
		if child, ok := object.(T); ok {
			children = append(children, child)
		}
	}
	return children
}
