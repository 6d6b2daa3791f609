// Package controller maintains the status of SidecarSets, and updates changed images in running
// Pods, one Pod at a time.
//
// It is designed for many Pods. It caches only Pods with sidecars and only the relevant fields. An
// index finds the Pods of one SidecarSet. Irrelevant Pod events are dropped, and other events are
// batched. So a reconcile reads only the Pods of one SidecarSet, and runs at most ten times per
// second.
package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
	"github.com/example/nginx-operator/pkg/manager"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets,verbs=list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// setIndex is the name of the index of Pods by the SidecarSets whose sidecars they carry.
	setIndex = "sidecarsets"
	// Batch is the time to collect Pod events before a reconcile.
	Batch      = 100 * time.Millisecond
	fieldOwner = client.FieldOwner("sidecarset-operator")
	// staleRetry is the delay before a reconcile with stale data is repeated.
	staleRetry = 50 * time.Millisecond
)

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager) error {
	// The manager's cache contains other Pods and fields. The client of this cache reads its own
	// writes.
	pods, err := cluster.New(mgr.GetConfig(), func(o *cluster.Options) {
		o.Scheme = mgr.GetScheme()
		o.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}
		o.Cache = cache.Options{
			DefaultLabelSelector: labels.SelectorFromSet(labels.Set{sidecar.LabelInjected: "true"}),
			DefaultTransform:     sidecar.Slim,
		}
	})
	if err != nil {
		return fmt.Errorf("failed to make a cache of Pods: %w", err)
	}
	index := pods.GetFieldIndexer().IndexField
	if err := errors.Join(mgr.Add(pods), index(context.Background(), &corev1.Pod{}, setIndex, setsOf)); err != nil {
		return fmt.Errorf("failed to add the cache of Pods: %w", err)
	}
	reconciler := &Reconciler{
		Client: mgr.GetClient(), Pods: pods.GetClient(), API: pods.GetAPIReader(), Recorder: mgr.GetEventRecorder(string(fieldOwner)),
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.SidecarSet{}, builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(source.Kind(pods.GetCache(), &corev1.Pod{}, enqueueSets(), whatCounts())).
		WithOptions(manager.ControllerOptions()).
		Complete(reconcile.AsReconciler(mgr.GetClient(), reconciler))
}

func setsOf(pod client.Object) []string { return slices.Collect(maps.Keys(sidecar.Recorded(pod))) }

// enqueueSets maps a Pod to the SidecarSets whose sidecars it carries. The delay merges several
// events into one reconcile.
func enqueueSets() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(queue queue, pod *corev1.Pod) {
		for _, name := range setsOf(pod) {
			queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, Batch)
		}
	}
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Pod], queue queue) { enqueue(queue, e.Object) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Pod], queue queue) {
			enqueue(queue, e.ObjectOld)
			enqueue(queue, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Pod], queue queue) { enqueue(queue, e.Object) },
	}
}

// whatCounts drops updates that change none of the fields that Slim retains.
func whatCounts() predicate.TypedPredicate[*corev1.Pod] {
	return predicate.TypedFuncs[*corev1.Pod]{UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool {
		before, after := *e.ObjectOld, *e.ObjectNew
		before.ResourceVersion, after.ResourceVersion = "", ""
		return !equality.Semantic.DeepEqual(before, after)
	}}
}

// Reconciler reconciles SidecarSets.
type Reconciler struct {
	Client client.Client
	// Pods reads the cached fields of Pods, and writes Pods, with read-your-writes consistency.
	Pods client.Client
	// API reads complete Pods.
	API      client.Reader
	Recorder events.EventRecorder
}

// Reconcile counts the Pods of a SidecarSet, updates one of them if possible, and writes the
// status. It keeps no state between reconciles: reads include its own writes, and the event of an
// updated Pod triggers the next reconcile.
func (r *Reconciler) Reconcile(ctx context.Context, set *v1alpha1.SidecarSet) (reconcile.Result, error) {
	if !set.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	counts, err := r.count(ctx, set)
	var updateErr error
	if err == nil && counts.Next != nil && !set.Spec.Paused && sidecar.Admitted(set) {
		updateErr = r.update(ctx, set, counts.Next)
		if apierrors.IsConflict(updateErr) || apierrors.IsNotFound(updateErr) {
			return reconcile.Result{RequeueAfter: staleRetry}, nil
		}
		counts, err = r.count(ctx, set)
	}
	if err != nil {
		return reconcile.Result{}, errors.Join(updateErr, err)
	}
	return reconcile.Result{}, errors.Join(updateErr, r.writeStatus(ctx, set, sidecar.Status(set, counts, updateErr)))
}

func (r *Reconciler) count(ctx context.Context, set *v1alpha1.SidecarSet) (sidecar.Counts, error) {
	pods := &corev1.PodList{}
	if err := r.Pods.List(ctx, pods, client.MatchingFields{setIndex: set.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return sidecar.Counts{}, fmt.Errorf("failed to list Pods: %w", err)
	}
	return sidecar.Count(set, pods.Items), nil
}

// update sets the images of the SidecarSet in one Pod. It returns a conflict if the Pod has changed
// since it was counted.
func (r *Reconciler) update(ctx context.Context, set *v1alpha1.SidecarSet, counted *corev1.Pod) error {
	live := &corev1.Pod{}
	if err := r.API.Get(ctx, client.ObjectKeyFromObject(counted), live); err != nil {
		return fmt.Errorf("failed to read Pod %s: %w", klog.KObj(counted), err)
	}
	live.ResourceVersion = counted.ResourceVersion
	updated := sidecar.UpdateImages(live, set)
	patch := client.StrategicMergeFrom(live, client.MergeFromWithOptimisticLock{})
	if err := r.Pods.Patch(ctx, updated, patch, fieldOwner); err != nil {
		return fmt.Errorf("failed to update Pod %s: %w", klog.KObj(counted), err)
	}
	log.FromContext(ctx).Info("Updated the sidecars of a Pod", "pod", klog.KObj(updated))
	r.Recorder.Eventf(set, updated, corev1.EventTypeNormal, "PodUpdated", "Update", "updated Pod %s in place", klog.KObj(updated))
	return nil
}

// writeStatus patches the status if it differs. Then it sends an Event for each new condition and
// each new reason of a warning.
func (r *Reconciler) writeStatus(ctx context.Context, set *v1alpha1.SidecarSet, status v1alpha1.SidecarSetStatus) error {
	if equality.Semantic.DeepEqual(set.Status, status) {
		return nil
	}
	patched := set.DeepCopy()
	patched.Status = status
	if err := r.Client.Status().Patch(ctx, patched, client.MergeFrom(set), fieldOwner); err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, condition := range status.Conditions {
		eventType := corev1.EventTypeWarning
		if condition.Type == v1alpha1.ConditionUpdating && condition.Reason != v1alpha1.ReasonUpdateFailed {
			eventType = corev1.EventTypeNormal
		}
		before := meta.FindStatusCondition(set.Status.Conditions, condition.Type)
		if before == nil || eventType == corev1.EventTypeWarning && before.Reason != condition.Reason {
			r.Recorder.Eventf(set, nil, eventType, condition.Type, "Reconcile", "%s", condition.Message)
		}
	}
	return nil
}
