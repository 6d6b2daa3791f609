package nginxoperator

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/operatormanager"
	"github.com/example/nginx-operator/internal/wellknown"
)

// Wrap goes around the reconciler, to watch over it.
type Wrap func(reconcile.Reconciler) reconcile.Reconciler

// SetupWithManager adds the controller to the manager, with the number of objects that are reconciled at a time.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, concurrency int, wrap Wrap) error {
	if err := indexReferences(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	options := operatormanager.ControllerOptions()
	options.MaxConcurrentReconciles = concurrency
	children := builder.WithPredicates(childChanged(r.Applier.IsAsDeclared))
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha2.NginxOperator{}, handler.OnlyControllerOwner())
	out := builder.ControllerManagedBy(mgr).
		For(&v1alpha2.NginxOperator{}, builder.WithPredicates(specChanged())).
		Owns(&appsv1.Deployment{}, children).
		Owns(&appsv1.ControllerRevision{}, children).
		Owns(&corev1.Service{}, children).
		Owns(&corev1.ConfigMap{}, children).
		Owns(&networkingv1.NetworkPolicy{}, children).
		Owns(&networkingv1.Ingress{}, children).
		Owns(&policyv1.PodDisruptionBudget{}, children).
		Owns(&autoscalingv2.HorizontalPodAutoscaler{}, children).
		Owns(&discoveryv1.EndpointSlice{}).
		Watches(&appsv1.ReplicaSet{}, handler.EnqueueRequestsFromMapFunc(toInstance), builder.WithPredicates(revisionEnds())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(toInstance), builder.WithPredicates(podFailureChanged())).
		WatchesRawSource(r.ConfigMaps.Source(r.referrers(configMapIndex))).
		WatchesRawSource(r.Secrets.Source(r.referrers(secretIndex))).
		WatchesRawSource(r.Fleet.Source())
	for _, child := range optionalChildren {
		out.WatchesRawSource(r.Optional[child.kind].Source(r.declaring(child), owned, childChanged(r.Applier.IsAsDeclared)))
	}
	return out.WithOptions(options).Complete(wrap(apply.AsReconciler(mgr.GetClient(), r, r.forget)))
}

// toInstance maps an object that carries the instance label to the NginxOperator of that name.
func toInstance(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[wellknown.LabelInstance]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// specChanged passes an object whose declaration changed, that became a canary or is none any more, or that is being deleted. The
// generation alone does not tell: what v1alpha1 cannot say is kept in an annotation of the stored form, and a change of that is none of
// the generation.
func specChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isBefore := e.ObjectOld.(*v1alpha2.NginxOperator)
			after, isAfter := e.ObjectNew.(*v1alpha2.NginxOperator)
			if !isBefore || !isAfter {
				return false
			}
			_, wasUnreadable := before.Annotations[wellknown.AnnotationV1alpha2Unreadable]
			_, isUnreadable := after.Annotations[wellknown.AnnotationV1alpha2Unreadable]
			return wasUnreadable != isUnreadable || wellknown.IsCanary(before.Labels) != wellknown.IsCanary(after.Labels) ||
				!defaults.SameSpec(&before.Spec, &after.Spec)
		},
	})
}

// childChanged passes a child that is not as the last reconcile left it, what others report of a Deployment, a Service, an Ingress or an
// HTTPRoute, and each of them every ten hours, when the cache hands over all. Most events are of the operator's own writes.
func childChanged(asDeclared func(client.Object) bool) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !asDeclared(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !asDeclared(e.ObjectNew) || e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() ||
				reportChanged(e.ObjectOld, e.ObjectNew)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// reportChanged compares what a reconcile reads of a Deployment, a Service, an Ingress or an HTTPRoute beside what is declared of it.
func reportChanged(old, now client.Object) bool {
	if service, isService := old.(*corev1.Service); isService {
		after, remains := now.(*corev1.Service)
		return remains && !sameIngress(service, after)
	}
	if before, isIngress := old.(*networkingv1.Ingress); isIngress {
		after, remains := now.(*networkingv1.Ingress)
		return remains && !equality.Semantic.DeepEqual(before.Status, after.Status)
	}
	if before, isRoute := old.(*gatewayv1.HTTPRoute); isRoute {
		after, remains := now.(*gatewayv1.HTTPRoute)
		return remains && !equality.Semantic.DeepEqual(before.Status, after.Status)
	}
	before, isDeployment := old.(*appsv1.Deployment)
	after, remains := now.(*appsv1.Deployment)
	return isDeployment && remains &&
		(scaledByOthers(before) != scaledByOthers(after) || !equality.Semantic.DeepEqual(before.Status, after.Status))
}

// revisionEnds passes the end of a revision: its ConfigMap may go when it is deleted, and its ports when it wants no Pods.
func revisionEnds() predicate.Predicate {
	wanted := func(object client.Object) bool {
		replicaSet, ok := object.(*appsv1.ReplicaSet)
		return ok && wantsPods(replicaSet)
	}
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return wanted(e.ObjectOld) && !wanted(e.ObjectNew) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// podFailureChanged passes a Pod whose reason not to serve came, went or changed, one that is to end, with which a node port may move,
// and the end of a Pod: a port that is no longer declared may go with it. All else that happens to a Pod reaches the object through the
// Deployment's status.
func podFailureChanged() predicate.Predicate {
	of := func(object client.Object) failure {
		if pod, ok := object.(*corev1.Pod); ok && pod.DeletionTimestamp.IsZero() {
			if found := podFailure(pod); found != nil {
				return *found
			}
		}
		return failure{}
	}
	ended := func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		return ok && hasEnded(pod)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return of(e.Object) != failure{} },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return of(e.ObjectOld) != of(e.ObjectNew) || ended(e.ObjectOld) != ended(e.ObjectNew) ||
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
