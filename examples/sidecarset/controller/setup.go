// Package controller keeps the status of SidecarSets, and brings changed images into running Pods, one Pod at a time.
//
// It is made for many Pods: only Pods with sidecars are cached, of each only what counts, and an index finds those of one
// SidecarSet. What does not count in a Pod's event is filtered out, and the other events are batched. So a reconcile looks at the
// Pods of one SidecarSet, ten times a second at most.
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
	"github.com/example/nginx-operator/internal/operatormanager"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets,verbs=list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// setIndex is the index of Pods by the SidecarSets whose sidecars they carry.
	setIndex = "sidecarsets"
	// batch is how long events of Pods are collected before a reconcile.
	batch = 100 * time.Millisecond
	// maxRecord bounds the annotations that are read: whoever may write a Pod may write them.
	maxRecord = 16 << 10
)

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager) error {
	// A cache beside the manager's, because others want other Pods, or more of them. Its client reads what it wrote.
	pods, err := cluster.New(mgr.GetConfig(), func(o *cluster.Options) {
		o.Scheme = mgr.GetScheme()
		o.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}
		o.Cache = cache.Options{
			DefaultLabelSelector: labels.SelectorFromSet(labels.Set{sidecar.LabelInjected: "true"}),
			DefaultTransform:     slimPod,
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
		WithOptions(operatormanager.ControllerOptions()).
		Complete(reconcile.AsReconciler(mgr.GetClient(), reconciler))
}

func setsOf(pod client.Object) []string { return slices.Collect(maps.Keys(sidecar.Recorded(pod))) }

// enqueueSets maps a Pod to the SidecarSets whose sidecars it carries, after a while in which further events join.
func enqueueSets() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(queue queue, pod *corev1.Pod) {
		for _, name := range setsOf(pod) {
			queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, batch)
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

// whatCounts drops updates that change nothing of what slimPod keeps.
func whatCounts() predicate.TypedPredicate[*corev1.Pod] {
	return predicate.TypedFuncs[*corev1.Pod]{UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool {
		before, after := *e.ObjectOld, *e.ObjectNew
		before.ResourceVersion, after.ResourceVersion = "", ""
		return !equality.Semantic.DeepEqual(before, after)
	}}
}

// slimPod keeps of a Pod what counts. It passes anything else through: the cache also hands over tombstones.
func slimPod(in any) (any, error) {
	pod, isPod := in.(*corev1.Pod)
	if !isPod {
		return in, nil
	}
	slim := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		DeletionTimestamp: pod.DeletionTimestamp, Labels: pod.Labels,
	}}
	for _, key := range []string{sidecar.AnnotationHash, sidecar.AnnotationHashWithoutImage, sidecar.AnnotationInPlaceUpdate} {
		if value := pod.Annotations[key]; value != "" && len(value) <= maxRecord {
			metav1.SetMetaDataAnnotation(&slim.ObjectMeta, key, value)
		}
	}
	slim.Status.Phase = pod.Status.Phase
	slim.Status.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions), func(condition corev1.PodCondition) bool {
		return condition.Type != corev1.PodReady
	})
	replaced := sidecar.Replaced(slim)
	slim.Status.ContainerStatuses = slices.DeleteFunc(slices.Clone(pod.Status.ContainerStatuses), func(status corev1.ContainerStatus) bool {
		_, found := replaced[status.Name]
		return !found
	})
	return slim, nil
}
