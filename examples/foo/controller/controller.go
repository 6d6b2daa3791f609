// Package controller reconciles Foos. It shows how to depend on objects of other owners: it maps
// the events of a watch to the affected objects. The cost depends on the number of changes and not
// on the number of objects. For Pods, only the metadata is transferred and cached. Indexes find the
// Foos that look for a Pod's name, and the Pods with the name that a Foo looks for.
package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/examples/foo/api/v1"
	"github.com/example/nginx-operator/pkg/manager"
)

// +kubebuilder:rbac:groups=tutorial.my.domain,resources=foos,verbs=list;watch
// +kubebuilder:rbac:groups=tutorial.my.domain,resources=foos/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// friendIndex is the index of Foos by spec.name. nameIndex is the index of Pods by
	// metadata.name.
	friendIndex = "spec.name"
	nameIndex   = "metadata.name"
)

// Reconciler reconciles Foos.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
}

// Setup adds the controller to a manager with CacheByObject and read-your-writes consistency.
func Setup(mgr ctrl.Manager) error {
	r := &Reconciler{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("foo")}
	friendOf := func(foo client.Object) []string { return []string{foo.(*v1.Foo).Spec.Name} }
	nameOf := func(pod client.Object) []string { return []string{pod.GetName()} }
	ctx, index := context.Background(), mgr.GetFieldIndexer().IndexField
	if err := errors.Join(index(ctx, &v1.Foo{}, friendIndex, friendOf), index(ctx, podMetadata(), nameIndex, nameOf)); err != nil {
		return fmt.Errorf("failed to index Foos and Pods: %w", err)
	}
	// Only the creation and deletion of a Pod are relevant. At a start, every Foo is reconciled.
	comesOrGoes := predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1.Foo{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(podMetadata(), handler.EnqueueRequestsFromMapFunc(r.lookingFor), builder.WithPredicates(comesOrGoes)).
		WithOptions(manager.ControllerOptions()).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// podMetadata returns a Pod as metadata only, so that the API server sends no spec and no status.
func podMetadata() *metav1.PartialObjectMetadata {
	pod := &metav1.PartialObjectMetadata{}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return pod
}

// CacheByObject makes the manager's cache keep only the fields that identify a Pod. A controller
// that needs more of Pods needs its own cache.
func CacheByObject() map[client.Object]cache.ByObject {
	slim := func(in any) (any, error) {
		if pod, isPod := in.(*metav1.PartialObjectMetadata); isPod {
			pod.ObjectMeta = metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion}
		}
		return in, nil
	}
	return map[client.Object]cache.ByObject{podMetadata(): {Transform: slim}}
}

// lookingFor maps a Pod to the Foos in all namespaces that look for its name.
func (r *Reconciler) lookingFor(ctx context.Context, pod client.Object) []reconcile.Request {
	foos := &v1.FooList{}
	if err := r.Client.List(ctx, foos, client.MatchingFields{friendIndex: pod.GetName()}); err != nil {
		log.FromContext(ctx).Error(err, "Failed to find the Foos that look for a Pod", "pod", pod.GetName())
		return nil
	}
	var out []reconcile.Request
	for i := range foos.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&foos.Items[i])})
	}
	return out
}

// Reconcile looks for the friend of a Foo and patches the status if it differs. Then it sends an
// Event if the happiness changed.
func (r *Reconciler) Reconcile(ctx context.Context, foo *v1.Foo) (reconcile.Result, error) {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := r.Client.List(ctx, pods, client.MatchingFields{nameIndex: foo.Spec.Name}); err != nil {
		return reconcile.Result{}, fmt.Errorf("failed to list Pods: %w", err)
	}
	before, after := foo.Status, v1.FooStatus{Happy: len(pods.Items) > 0, ObservedGeneration: foo.Generation}
	if before == after {
		return reconcile.Result{}, nil
	}
	patched := foo.DeepCopy()
	patched.Status = after
	if err := r.Client.Status().Patch(ctx, patched, client.MergeFrom(foo)); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("Wrote status", "friend", foo.Spec.Name, "happy", after.Happy)
	switch {
	case before.Happy == after.Happy:
	case after.Happy:
		r.Recorder.Eventf(foo, nil, corev1.EventTypeNormal, "FriendFound", "Reconcile", "found %s", names(pods.Items))
	default:
		r.Recorder.Eventf(foo, nil, corev1.EventTypeNormal, "FriendLost", "Reconcile", "no Pod in the cluster is named %q", foo.Spec.Name)
	}
	return reconcile.Result{}, nil
}

// names returns up to three Pods as namespace/name, sorted.
func names(pods []metav1.PartialObjectMetadata) string {
	var out []string
	for i := range pods {
		out = append(out, client.ObjectKeyFromObject(&pods[i]).String())
	}
	slices.Sort(out)
	return strings.Join(out[:min(len(out), 3)], ", ")
}
