package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
	operatormanager "github.com/example/nginx-operator/internal/manager"
)

const (
	// batch is how long the events of Pods are collected before a pass: many Pods that start at once cost a few writes of
	// the status, not one each.
	batch = 100 * time.Millisecond
)

// Setup adds the controller to the manager, whose scheme has v1alpha1. Of Pods only those that carry sidecars are cached, and
// of each only what counts.
func Setup(mgr ctrl.Manager) error {
	pods, err := operatormanager.AddCluster(mgr, cache.Options{
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Label: labels.SelectorFromSet(labels.Set{sidecar.LabelInjected: "true"}), Transform: slimPod},
		},
	})
	if err != nil {
		return err
	}
	reconciler := &Reconciler{
		Sets:     mgr.GetClient(),
		Pods:     pods.GetClient(),
		Reader:   pods.GetAPIReader(),
		Tally:    NewTally(),
		Recorder: mgr.GetEventRecorder(string(fieldOwner)),
	}
	err = builder.ControllerManagedBy(mgr).
		// Events of the own status writes are not left out: a pass that read an older status than the stored one is made
		// right by them.
		For(&v1alpha1.SidecarSet{}).
		// Before the first pass the source waits until its handler has seen every Pod of the cache.
		WatchesRawSource(source.Kind(pods.GetCache(), &corev1.Pod{}, countPods(reconciler.Tally))).
		WithOptions(operatormanager.ControllerOptions()).
		Complete(reconciler)
	if err != nil {
		return fmt.Errorf("failed to set up the controller of SidecarSets: %w", err)
	}
	return nil
}

// countPods keeps the account, and asks for a pass over the SidecarSets for which it changed. What else happens to a Pod
// asks for none.
func countPods(tally *Tally) handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(queue queue, names []string) {
		for _, name := range names {
			queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, batch)
		}
	}
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Pod], queue queue) {
			enqueue(queue, tally.Observe(e.Object))
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Pod], queue queue) {
			enqueue(queue, tally.Observe(e.ObjectNew))
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Pod], queue queue) {
			enqueue(queue, tally.Remove(e.Object))
		},
	}
}

// slimPod takes from a Pod, before it enters the cache, what does not count. It passes anything else through (the cache also
// hands over tombstones).
func slimPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil
	}
	slim := &corev1.Pod{}
	slim.Namespace, slim.Name, slim.UID, slim.ResourceVersion = pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion
	slim.DeletionTimestamp, slim.Labels = pod.DeletionTimestamp, pod.Labels
	for _, key := range []string{sidecar.AnnotationHash, sidecar.AnnotationHashWithoutImage, sidecar.AnnotationInPlaceUpdate} {
		if value, found := pod.Annotations[key]; found {
			if slim.Annotations == nil {
				slim.Annotations = map[string]string{}
			}
			slim.Annotations[key] = value
		}
	}
	slim.Status.Phase = pod.Status.Phase
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			slim.Status.Conditions = []corev1.PodCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	replaced := sidecar.Replaced(slim.Annotations)
	for _, status := range pod.Status.ContainerStatuses {
		if _, waits := replaced[status.Name]; waits {
			slim.Status.ContainerStatuses = append(slim.Status.ContainerStatuses, corev1.ContainerStatus{Name: status.Name, ContainerID: status.ContainerID})
		}
	}
	return slim, nil
}
