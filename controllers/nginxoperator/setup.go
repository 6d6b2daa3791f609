package nginxoperator

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/resolve"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/apply"
)

// NewApplier returns the Applier of the operator. The client reads from the cache, and the reader
// from the API server. wrote is called after each successful write.
func NewApplier(cached client.Client, reader client.Reader, wrote func(kind string, verb apply.Verb)) *apply.Applier {
	return &apply.Applier{
		Client: cached, Reader: reader, Wrote: wrote,
		FieldOwner: wellknown.OperatorName, Labels: wellknown.Selector, Annotation: wellknown.AnnotationLastDeclared,
		Unrecorded: wellknown.LabelRecord, Abbreviated: wellknown.AnnotationFirstDeclaration,
		ConfirmOwners: true,
	}
}

// SetupWithManager adds the controller to the manager. wrap wraps the reconciler, for example in a
// watchdog.
func (r *Reconciler) SetupWithManager(
	mgr manager.Manager, options controller.Options, wrap func(reconcile.Reconciler) reconcile.Reconciler,
) error {
	children := builder.WithPredicates(childChanged(r.Applier.IsAsDeclared))
	owned := enqueue(cached.ControllingInstance)
	labeled := enqueue(func(object metav1.Object) string { return object.GetLabels()[wellknown.LabelInstance] })
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
		// Reconcile writes the bridges. Their events would start the next reconcile too early.
		Watches(&discoveryv1.EndpointSlice{}, handler.Funcs{}).
		Watches(&appsv1.ReplicaSet{}, labeled, builder.WithPredicates(revisionEnds())).
		Watches(&corev1.Pod{}, labeled, builder.WithPredicates(podFailureChanged())).
		WatchesRawSource(r.ConfigMaps.Source(resolve.Referrers(r.Client, resolve.ConfigMapIndex), cachesFilled)).
		WatchesRawSource(r.Secrets.Source(resolve.Referrers(r.Client, resolve.SecretIndex), configMapsListed)).
		WatchesRawSource(r.Fleet)

	kinds := []client.Object{
		&appsv1.ControllerRevision{}, &corev1.Service{}, &corev1.ConfigMap{}, &networkingv1.NetworkPolicy{},
		&networkingv1.Ingress{}, &policyv1.PodDisruptionBudget{}, &autoscalingv2.HorizontalPodAutoscaler{},
	}

	for _, optional := range operand.OptionalKinds {
		if r.Missing[optional.Kind] == "" {
			kinds = append(kinds, operand.New(optional.Kind))
		}
	}

	for _, kind := range kinds {
		out.Watches(kind, owned, children)
	}

	return out.WithOptions(options).Complete(wrap(apply.AsReconciler(r.Client, r, r.forget)))
}

// enqueue requests a reconcile of the NginxOperator whose name a function returns, unless it is "".
func enqueue(nameOf func(metav1.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		name := nameOf(object)
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
	})
}

// newGenerationFirst requests a reconcile of an object whose generation no leader has observed,
// with the usual priority. All objects of the first list have a low one.
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

// specChanged passes an object if its spec or its canary label has changed, or if it is being
// deleted. Fields that v1alpha1 lacks may be in an annotation, which has no generation.
func specChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*v1alpha2.NginxOperator), e.ObjectNew.(*v1alpha2.NginxOperator)
			_, wasUnreadable := before.Annotations[wellknown.AnnotationV1alpha2Unreadable]
			_, isUnreadable := after.Annotations[wellknown.AnnotationV1alpha2Unreadable]
			return wasUnreadable != isUnreadable || wellknown.IsCanary(before.Labels) != wellknown.IsCanary(after.Labels) ||
				cached.SpecsDiffer(before, after)
		},
	})
}

// childChanged passes a child that differs from the last write of the operator, a changed status of
// a Deployment, Service, Ingress, or HTTPRoute, and each child at the resync every ten hours.
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

// newOfKind returns an empty object of the same kind.
func newOfKind(object client.Object) client.Object {
	return reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
}

// reportChanged reports whether the status has changed that a reconcile reads of a Deployment,
// Service, Ingress, or HTTPRoute, or anything else if the cache has only a part of the object.
func reportChanged(old, updated client.Object) bool {
	if differ, isPart := cached.PartsDiffer(old, updated); isPart {
		return differ
	}
	switch before := old.(type) {
	case *corev1.Service:
		same := func(a, b corev1.LoadBalancerIngress) bool {
			return cmp.Or(a.IP, a.Hostname) == cmp.Or(b.IP, b.Hostname)
		}
		return !slices.EqualFunc(cached.BalancerAddresses(before), cached.BalancerAddresses(updated.(*corev1.Service)), same)
	case *networkingv1.Ingress:
		return !equality.Semantic.DeepEqual(before.Status, updated.(*networkingv1.Ingress).Status)
	case *gatewayv1.HTTPRoute:
		return !equality.Semantic.DeepEqual(before.Status, updated.(*gatewayv1.HTTPRoute).Status)
	case *appsv1.Deployment:
		return health.StatusChanged(updated.(*appsv1.Deployment), before.Status)
	}

	return false
}

// revisionEnds passes a ReplicaSet that is deleted or no longer requests Pods. Its ConfigMaps and
// ports may be removed then.
func revisionEnds() predicate.Predicate {
	wanted := func(object client.Object) bool { return health.WantsPods(object.(*appsv1.ReplicaSet)) }
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
// ended. A node port may move, or an undeclared port be removed then.
func podFailureChanged() predicate.Predicate {
	failureOf := func(object client.Object) failure.Failure {
		if !object.GetDeletionTimestamp().IsZero() {
			return failure.Failure{}
		}
		return ptr.Deref(health.PodFailure(object.(*corev1.Pod)), failure.Failure{})
	}
	ended := func(object client.Object) bool { return health.HasEnded(object.(*corev1.Pod)) }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return cached.IsPart(e.Object) || failureOf(e.Object) != failure.Failure{}
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			differ, isPart := cached.PartsDiffer(e.ObjectOld, e.ObjectNew)
			return isPart && differ || failureOf(e.ObjectOld) != failureOf(e.ObjectNew) ||
				ended(e.ObjectOld) != ended(e.ObjectNew) ||
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// statusDelay is the delay of a reconcile for the status of a Deployment, which changes several
// times while Pods start.
const statusDelay = 200 * time.Millisecond

// statusLater delays the requests for changes of a Deployment that did not change its spec.
type statusLater struct{ handler.EventHandler }

// Update implements handler.EventHandler.
func (h statusLater) Update(
	ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request],
) {
	isResync := e.ObjectNew.GetResourceVersion() == e.ObjectOld.GetResourceVersion()
	if !isResync && e.ObjectNew.GetGeneration() == e.ObjectOld.GetGeneration() {
		queue = later{queue}
	}
	h.EventHandler.Update(ctx, e, queue)
}

// later is a queue that delays its requests. It is no priority queue, so handlers use Add.
type later struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Add implements workqueue.TypedInterface.
func (l later) Add(request reconcile.Request) { l.AddAfter(request, statusDelay) }
