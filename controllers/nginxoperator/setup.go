package nginxoperator

import (
	"cmp"
	"context"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/inputs"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/apply"
)

// Wrap wraps the reconciler, for example in a watchdog.
type Wrap func(reconcile.Reconciler) reconcile.Reconciler

// NewApplier returns the Applier of the operator. The client reads from the cache and writes to the
// API server, and the reader reads from the API server. wrote is called after each successful
// write.
func NewApplier(cached client.Client, reader client.Reader, wrote func(kind string, verb apply.Verb)) *apply.Applier {
	return &apply.Applier{
		Client: cached, Reader: reader, Wrote: wrote,
		FieldOwner: wellknown.OperatorName, Labels: wellknown.Selector, Annotation: wellknown.AnnotationLastDeclared,
		Unrecorded: wellknown.LabelRecord, Abbreviated: wellknown.AnnotationFirstDeclaration,
		ConfirmOwners: true,
	}
}

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, options controller.Options, wrap Wrap) error {
	children := builder.WithPredicates(childChanged(r.Applier.IsAsDeclared))
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), ownMapper(), &v1alpha2.NginxOperator{}, handler.OnlyControllerOwner())
	cachesFilled := func(ctx context.Context) {
		// Without this informer, the controller does not start either. The others start with it.
		_, _ = mgr.GetCache().GetInformer(ctx, &v1alpha2.NginxOperator{})
		mgr.GetCache().WaitForCacheSync(ctx)
	}
	// An incomplete list takes memory, so the two largest ones follow each other.
	configMapsListed := func(ctx context.Context) {
		cachesFilled(ctx)
		r.ConfigMaps.Await(ctx)
	}
	out := builder.ControllerManagedBy(mgr).
		For(&v1alpha2.NginxOperator{}, builder.WithPredicates(predicate.Or(specChanged(), r.changedByOthers()))).
		Watches(&v1alpha2.NginxOperator{}, handler.Funcs{CreateFunc: newGenerationFirst}).
		Watches(&appsv1.Deployment{}, statusLater{owned}, children).
		Watches(&appsv1.ControllerRevision{}, owned, children).
		Watches(&corev1.Service{}, owned, children).
		Watches(&corev1.ConfigMap{}, owned, children).
		Watches(&networkingv1.NetworkPolicy{}, owned, children).
		Watches(&networkingv1.Ingress{}, owned, children).
		Watches(&policyv1.PodDisruptionBudget{}, owned, children).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, owned, children).
		Watches(&discoveryv1.EndpointSlice{}, owned, builder.WithPredicates(noEvents())).
		Watches(&appsv1.ReplicaSet{}, handler.EnqueueRequestsFromMapFunc(toInstance), builder.WithPredicates(revisionEnds())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(toInstance), builder.WithPredicates(podFailureChanged())).
		WatchesRawSource(r.ConfigMaps.Source(inputs.Referrers(r.Client, inputs.ConfigMapIndex), cachesFilled)).
		WatchesRawSource(r.Secrets.Source(inputs.Referrers(r.Client, inputs.SecretIndex), configMapsListed)).
		WatchesRawSource(r.Fleet.Source())
	for _, child := range operand.OptionalKinds {
		if r.Missing[child.Kind] == "" {
			out.Watches(operand.New(child.Kind), owned, children)
		}
	}
	return out.WithOptions(options).Complete(wrap(apply.AsReconciler(r.Client, r, r.forget)))
}

// ownMapper returns a mapper that knows only NginxOperators. The handler asks it for each event,
// and the manager's mapper searches all API groups for an answer.
func ownMapper() meta.RESTMapper {
	out := meta.NewDefaultRESTMapper(nil)
	for _, version := range []schema.GroupVersion{v1alpha1.GroupVersion, v1alpha2.GroupVersion} {
		out.Add(version.WithKind("NginxOperator"), meta.RESTScopeNamespace)
	}
	return out
}

// newGenerationFirst requests a reconcile of an object whose generation no leader has observed,
// with the usual priority. All objects of the first list have a low one, and a new leader would
// reconcile those that nobody has changed before this one.
func newGenerationFirst(
	_ context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request],
) {
	object, ok := e.Object.(*v1alpha2.NginxOperator)
	if priorities, has := queue.(priorityqueue.PriorityQueue[reconcile.Request]); has && ok && e.IsInInitialList &&
		object.Status.ObservedGeneration != object.Generation {
		// For an object of the first list, Add uses the low priority.
		priorities.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(0)}, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}
}

// toInstance maps an object with the instance label to the NginxOperator of that name.
func toInstance(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[wellknown.LabelInstance]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// specChanged passes an object if its spec or its canary label has changed, or if it is being
// deleted. It does not rely on the generation alone: fields that v1alpha1 lacks may be in an
// annotation of the stored object, which does not change the generation.
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
				cached.SpecsDiffer(before, after)
		},
	})
}

// childChanged passes a child that differs from the last write of the operator, a changed status of
// a Deployment, Service, Ingress, or HTTPRoute, and each child at the resync every ten hours. It
// drops the events of the operator's own writes, which are most events.
func childChanged(asDeclared func(client.Object) bool) predicate.Predicate {
	return predicate.Funcs{
		// The operator may have created the child before its cache had it, and another controller
		// may have set its status since.
		CreateFunc: func(e event.CreateEvent) bool {
			return !asDeclared(e.Object) || reportChanged(newOfKind(e.Object), e.Object)
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !asDeclared(e.ObjectNew) || e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() ||
				reportChanged(e.ObjectOld, e.ObjectNew)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// noEvents passes no event. Only Reconcile writes bridges, and it requeues an object that has one.
// Events of these writes would start the next reconcile too early.
func noEvents() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(client.Object) bool { return false })
}

// newOfKind returns an empty object of the same kind.
func newOfKind(object client.Object) client.Object {
	return reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
}

// reportChanged reports whether the status has changed that a reconcile reads of a Deployment,
// Service, Ingress, or HTTPRoute, or anything else if the cache has only a part of the object.
func reportChanged(old, now client.Object) bool {
	if differ, isPart := cached.PartsDiffer(old, now); isPart {
		return differ
	}
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
	return isDeployment && remains && health.StatusChanged(after, before.Status)
}

// revisionEnds passes a ReplicaSet that is deleted or no longer requests Pods. Its ConfigMaps and
// ports may be removed then.
func revisionEnds() predicate.Predicate {
	wanted := func(object client.Object) bool {
		replicaSet, ok := object.(*appsv1.ReplicaSet)
		return ok && health.WantsPods(replicaSet)
	}
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			differ, isPart := cached.PartsDiffer(e.ObjectOld, e.ObjectNew)
			return isPart && differ || wanted(e.ObjectOld) && !wanted(e.ObjectNew)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// podFailureChanged passes a Pod whose failure has changed, that is being deleted, or that has
// ended. A node port may move, or an undeclared port be removed then. The status of the Deployment
// reports all other changes of Pods.
func podFailureChanged() predicate.Predicate {
	of := func(object client.Object) failure.Failure {
		if pod, ok := object.(*corev1.Pod); ok && pod.DeletionTimestamp.IsZero() {
			if found := health.PodFailure(pod); found != nil {
				return *found
			}
		}
		return failure.Failure{}
	}
	ended := func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		return ok && health.HasEnded(pod)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return cached.IsPart(e.Object) || of(e.Object) != failure.Failure{}
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			differ, isPart := cached.PartsDiffer(e.ObjectOld, e.ObjectNew)
			return isPart && differ || of(e.ObjectOld) != of(e.ObjectNew) || ended(e.ObjectOld) != ended(e.ObjectNew) ||
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// sameIngress reports whether two Services have the same load balancer addresses.
func sameIngress(a, b *corev1.Service) bool {
	before, after := cached.BalancerAddresses(a), cached.BalancerAddresses(b)
	if len(before) != len(after) {
		return false
	}
	for i := range before {
		if cmp.Or(before[i].IP, before[i].Hostname) != cmp.Or(after[i].IP, after[i].Hostname) {
			return false
		}
	}
	return true
}
