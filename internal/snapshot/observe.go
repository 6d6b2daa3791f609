// Package snapshot reads the live children, ReplicaSets, and Pods of an NginxOperator from the
// operator's cache.
package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/operand"
)

// Observed is the live state of the children at the end of a reconcile.
type Observed struct {
	// Deployment is the Deployment of the object, or nil if it does not exist.
	Deployment *appsv1.Deployment
	// Pods are the Pods of the object that are not being deleted, sorted by name.
	Pods []*corev1.Pod
	// Service has the ports of the object's Service, or nil if it does not exist.
	Service []corev1.ServicePort
	// Addresses are the addresses of the object's Ingress, and Balancer those of the Service's load
	// balancer.
	Addresses []string
	Balancer  []corev1.LoadBalancerIngress
	// Route is the object's HTTPRoute. It is nil or empty if it does not exist.
	Route *gatewayv1.HTTPRoute
	// Related are the declared and formerly declared children that exist and belong to the object.
	Related []v1alpha2.RelatedObject
}

// Reader reads live objects from the operator's cache.
type Reader struct {
	client.Client
}

// Written selects the cached children of an object. The list waits until the cache has all of the
// operator's writes of the kind.
func Written(object *v1alpha2.NginxOperator) []client.ListOption {
	return []client.ListOption{client.InNamespace(object.Namespace), client.MatchingFields{cached.InstanceIndex: object.Name}}
}

// Owned is Written without the wait. It is for kinds that only other controllers write, and for
// lists that may be stale.
func Owned(object *v1alpha2.NginxOperator) []client.ListOption {
	return append(Written(object), client.DisableReadYourWritesConsistency)
}

// Deployment returns the Deployment of the object, or nil if it does not exist.
func (r Reader) Deployment(ctx context.Context, object *v1alpha2.NginxOperator) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	if found, err := r.live(ctx, object, "Deployment", deployment); !found {
		return nil, err
	}
	return deployment, nil
}

// Service returns the Service of the object, or an empty one if it does not exist.
func (r Reader) Service(ctx context.Context, object *v1alpha2.NginxOperator) (*corev1.Service, error) {
	service := &corev1.Service{}
	if found, err := r.live(ctx, object, "Service", service); !found {
		return &corev1.Service{}, err
	}
	return service, nil
}

// live reads the child with the object's name, and reports whether it exists and belongs to the
// object.
func (r Reader) live(ctx context.Context, object *v1alpha2.NginxOperator, kind string, child client.Object) (bool, error) {
	err := r.Get(ctx, client.ObjectKeyFromObject(object), child)
	if isMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to read %s: %w", kind, err)
	}
	return metav1.IsControlledBy(child, object), nil
}

// isMissing reports whether a child does not exist, or its kind is not installed.
func isMissing(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// related returns the given children that exist and belong to the object, each once.
func (r Reader) related(
	ctx context.Context, object *v1alpha2.NginxOperator, named []v1alpha2.RelatedObject,
) ([]v1alpha2.RelatedObject, error) {
	var out []v1alpha2.RelatedObject
	for _, related := range named {
		child := operand.New(related.Kind)
		if child == nil || slices.Contains(out, related) {
			continue
		}
		err := r.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: related.Name}, child)
		if err != nil && !isMissing(err) {
			return nil, fmt.Errorf("failed to read %s %q: %w", related.Kind, related.Name, err)
		}
		if err == nil && metav1.IsControlledBy(child, object) && child.GetDeletionTimestamp().IsZero() {
			out = append(out, related)
		}
	}
	return out, nil
}

// Running returns the ports of the running Pods and of the live Service.
func (r Reader) Running(ctx context.Context, object *v1alpha2.NginxOperator) (operand.Running, error) {
	service, err := r.Service(ctx, object)
	if err != nil {
		return operand.Running{}, err
	}
	ingress, err := r.ingress(ctx, object)
	if err != nil {
		return operand.Running{}, err
	}
	route, err := r.httpRoute(ctx, object)
	if err != nil {
		return operand.Running{}, err
	}
	deployment, err := r.Deployment(ctx, object)
	if err != nil {
		return operand.Running{}, err
	}
	replicaSets, pods := &appsv1.ReplicaSetList{}, &corev1.PodList{}
	for _, list := range []client.ObjectList{replicaSets, pods} {
		if err := r.List(ctx, list, Owned(object)...); err != nil {
			return operand.Running{}, fmt.Errorf("failed to list what runs: %w", err)
		}
	}
	exposed := cmp.Or(cached.RoutePort(route), cached.BackendPort(ingress))
	out := operand.NewRunning(service.Spec.Ports, exposed, deployment, replicaSets.Items, pods.Items)
	out.ServiceVersion = service.ResourceVersion
	return out, nil
}

// Observe reads the children, and the Pods, of an object. Related children are those in the given
// list, and those in the status.
func (r Reader) Observe(ctx context.Context, object *v1alpha2.NginxOperator, declared []client.Object) (Observed, error) {
	service, err := r.Service(ctx, object)
	if err != nil {
		return Observed{}, err
	}
	related, err := r.related(ctx, object, slices.Concat(References(declared), object.Status.RelatedObjects))
	if err != nil {
		return Observed{}, err
	}
	ingress, err := r.ingress(ctx, object)
	if err != nil {
		return Observed{}, err
	}
	route, err := r.httpRoute(ctx, object)
	if err != nil {
		return Observed{}, err
	}
	out := Observed{
		Service: service.Spec.Ports, Balancer: cached.BalancerAddresses(service), Addresses: ingressAddresses(ingress), Route: route,
		Related: related,
	}
	deployment, err := r.Deployment(ctx, object)
	if err != nil || deployment == nil {
		return out, err
	}
	pods := &corev1.PodList{}
	if err := r.List(ctx, pods, Owned(object)...); err != nil {
		return Observed{}, fmt.Errorf("failed to list Pods: %w", err)
	}
	out.Deployment = deployment
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp.IsZero() {
			out.Pods = append(out.Pods, &pods.Items[i])
		}
	}
	slices.SortFunc(out.Pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// ingress returns the Ingress of the object, or an empty one if it does not exist.
func (r Reader) ingress(ctx context.Context, object *v1alpha2.NginxOperator) (*networkingv1.Ingress, error) {
	ingress := &networkingv1.Ingress{}
	if found, err := r.live(ctx, object, "Ingress", ingress); !found {
		return &networkingv1.Ingress{}, err
	}
	return ingress, nil
}

// httpRoute returns the HTTPRoute of the object, or an empty one if it does not exist.
func (r Reader) httpRoute(ctx context.Context, object *v1alpha2.NginxOperator) (*gatewayv1.HTTPRoute, error) {
	route := &gatewayv1.HTTPRoute{}
	if found, err := r.live(ctx, object, "HTTPRoute", route); !found {
		return &gatewayv1.HTTPRoute{}, err
	}
	return route, nil
}

// ingressAddresses returns the IP addresses and host names of the load balancers of an Ingress.
func ingressAddresses(ingress *networkingv1.Ingress) []string {
	var out []string
	for _, point := range ingress.Status.LoadBalancer.Ingress {
		for _, address := range []string{point.IP, point.Hostname} {
			if address != "" {
				out = append(out, address)
			}
		}
	}
	return out
}
