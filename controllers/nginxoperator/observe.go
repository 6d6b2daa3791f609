package nginxoperator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/operatormanager"
)

// observed is the state of the operands at the end of a reconcile.
type observed struct {
	// deployment is nil where there is none that belongs to the object.
	deployment *appsv1.Deployment
	// pods are those of the Deployment that are not being deleted, in the order of their names.
	pods []*corev1.Pod
	// service are the ports of the Service that belongs to the object, nil where there is none.
	service []corev1.ServicePort
	// addresses are those of the Ingress that belongs to the object, and balancer those of the Service's load balancer.
	addresses []string
	balancer  []corev1.LoadBalancerIngress
	// route is the HTTPRoute that belongs to the object, nil or an empty one where there is none.
	route *gatewayv1.HTTPRoute
	// related are the children that exist and belong to the object, of those that are or were declared.
	related []v1alpha2.RelatedObject
}

// writtenOf selects in the cache what belongs to an object. A list waits until the cache has what was written of its kind.
func writtenOf(object *v1alpha2.NginxOperator) []client.ListOption {
	return []client.ListOption{client.InNamespace(object.Namespace), client.MatchingFields{operatormanager.InstanceIndex: object.Name}}
}

// ofInstance is writtenOf for kinds that only others write, or that bear to be a moment old: a list need not wait for the writes
// of other workers.
func ofInstance(object *v1alpha2.NginxOperator) []client.ListOption {
	return append(writtenOf(object), client.DisableReadYourWritesConsistency)
}

// liveDeployment returns the Deployment that belongs to the object, nil where there is none.
func (r *Reconciler) liveDeployment(ctx context.Context, object *v1alpha2.NginxOperator) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	if found, err := r.live(ctx, object, "Deployment", deployment); !found {
		return nil, err
	}
	return deployment, nil
}

// liveService returns the Service that belongs to the object, an empty one where there is none.
func (r *Reconciler) liveService(ctx context.Context, object *v1alpha2.NginxOperator) (*corev1.Service, error) {
	service := &corev1.Service{}
	if found, err := r.live(ctx, object, "Service", service); !found {
		return &corev1.Service{}, err
	}
	return service, nil
}

// live reads the child that has the object's name, and reports whether it exists and belongs to the object.
func (r *Reconciler) live(ctx context.Context, object *v1alpha2.NginxOperator, kind string, child client.Object) (bool, error) {
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), child)
	if isMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to read %s: %w", kind, err)
	}
	return metav1.IsControlledBy(child, object), nil
}

// isMissing reports whether a child does not exist, be it that the cluster does not know its kind.
func isMissing(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// related returns, of the children that are named, those that exist and belong to the object, each once.
func (r *Reconciler) related(
	ctx context.Context, object *v1alpha2.NginxOperator, named []v1alpha2.RelatedObject,
) ([]v1alpha2.RelatedObject, error) {
	var out []v1alpha2.RelatedObject
	for _, related := range named {
		child := newChild(related)
		if child == nil || slices.Contains(out, related) {
			continue
		}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: related.Name}, child)
		if err != nil && !isMissing(err) {
			return nil, fmt.Errorf("failed to read %s %q: %w", related.Kind, related.Name, err)
		}
		if err == nil && metav1.IsControlledBy(child, object) && child.GetDeletionTimestamp().IsZero() {
			out = append(out, related)
		}
	}
	return out, nil
}

// newChild returns an empty object of the kind of a child, nil for any other kind.
func newChild(related v1alpha2.RelatedObject) client.Object {
	switch related.Kind {
	case "ConfigMap":
		return &corev1.ConfigMap{}
	case "Service":
		return &corev1.Service{}
	case "NetworkPolicy":
		return &networkingv1.NetworkPolicy{}
	case "Ingress":
		return &networkingv1.Ingress{}
	case "Deployment":
		return &appsv1.Deployment{}
	case "PodDisruptionBudget":
		return &policyv1.PodDisruptionBudget{}
	case "HorizontalPodAutoscaler":
		return &autoscalingv2.HorizontalPodAutoscaler{}
	}
	for _, child := range optionalChildren {
		if child.kind == related.Kind {
			return child.empty()
		}
	}
	return nil
}

// running returns what Pods listen on and what the Service serves. A Pod that is being deleted serves until it is gone.
func (r *Reconciler) running(ctx context.Context, object *v1alpha2.NginxOperator) (running, error) {
	service, err := r.liveService(ctx, object)
	if err != nil {
		return running{}, err
	}
	ingress, err := r.liveIngress(ctx, object)
	if err != nil {
		return running{}, err
	}
	route, err := r.liveHTTPRoute(ctx, object)
	if err != nil {
		return running{}, err
	}
	out := running{service: service.Spec.Ports, exposed: cmp.Or(operatormanager.RoutePort(route), operatormanager.BackendPort(ingress))}
	replicaSets, pods := &appsv1.ReplicaSetList{}, &corev1.PodList{}
	for _, list := range []client.ObjectList{replicaSets, pods} {
		if err := r.Client.List(ctx, list, ofInstance(object)...); err != nil {
			return running{}, fmt.Errorf("failed to list what runs: %w", err)
		}
	}
	slices.SortFunc(replicaSets.Items, func(a, b appsv1.ReplicaSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	seen, ready := sets.New[containerPort](), sets.New[int32]()
	add := func(ports []containerPort) {
		for _, port := range ports {
			if !seen.Has(port) {
				seen.Insert(port)
				out.containers = append(out.containers, port)
			}
		}
	}
	for i := range replicaSets.Items {
		if template := &replicaSets.Items[i].Spec.Template; wantsPods(&replicaSets.Items[i]) {
			add(containerPortsOf(template.Annotations, &template.Spec))
		}
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if hasEnded(pod) {
			continue
		}
		ports := containerPortsOf(pod.Annotations, &pod.Spec)
		add(ports)
		if pod.DeletionTimestamp == nil && metav1.GetControllerOfNoCopy(pod) != nil {
			out.addPod(ports, isReady(pod), ready)
		}
	}
	out.ready, out.everywhere = ready, out.everywhere.Intersection(ready)
	return out, nil
}

// isReady reports whether a Pod serves.
func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// wantsPods reports whether Pods of a revision exist or may be made.
func wantsPods(replicaSet *appsv1.ReplicaSet) bool { return ptr.Deref(replicaSet.Spec.Replicas, 0) > 0 }

// hasEnded reports whether the containers of a Pod have ended for good, though the Pod is still there: one that was evicted
// stays for as long as it likes.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func (r *Reconciler) observe(ctx context.Context, object *v1alpha2.NginxOperator, declared []client.Object) (observed, error) {
	service, err := r.liveService(ctx, object)
	if err != nil {
		return observed{}, err
	}
	related, err := r.related(ctx, object, slices.Concat(relatedObjects(declared), object.Status.RelatedObjects))
	if err != nil {
		return observed{}, err
	}
	ingress, err := r.liveIngress(ctx, object)
	if err != nil {
		return observed{}, err
	}
	route, err := r.liveHTTPRoute(ctx, object)
	if err != nil {
		return observed{}, err
	}
	out := observed{
		service: service.Spec.Ports, balancer: service.Status.LoadBalancer.Ingress, addresses: ingressAddresses(ingress), route: route,
		related: related,
	}
	deployment, err := r.liveDeployment(ctx, object)
	if err != nil || deployment == nil {
		return out, err
	}
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, ofInstance(object)...); err != nil {
		return observed{}, fmt.Errorf("failed to list Pods: %w", err)
	}
	out.deployment = deployment
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp.IsZero() {
			out.pods = append(out.pods, &pods.Items[i])
		}
	}
	slices.SortFunc(out.pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
