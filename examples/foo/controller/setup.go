// Package controller keeps the happiness of Foos true: it shows how to watch a kind that the operator does not own and
// to map each of its events to the objects that it concerns, at the cost of what changes and not of what exists.
//
// Of Pods only the metadata is read and kept, and of that only the name: neither the rest nor a change of it is of any
// interest. Both ways are indexes, so that neither a Pod's event nor a pass over a Foo walks through a list: Foos by the
// name that they look for, and Pods by the name that they have.
package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/example/nginx-operator/examples/foo/api/v1"
	operatormanager "github.com/example/nginx-operator/internal/manager"
)

// Rights of this example, no more than it uses.
//
// +kubebuilder:rbac:groups=tutorial.my.domain,resources=foos,verbs=list;watch
// +kubebuilder:rbac:groups=tutorial.my.domain,resources=foos/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// name is that of the controller and of the source of its Events.
	name = "foo"
	// friendIndex is the index of Foos by spec.name, podIndex that of Pods by metadata.name.
	friendIndex = "spec.name"
	podIndex    = "metadata.name"
)

// Setup adds the controller to the manager, whose scheme has to know Foos and whose client has to have read-your-writes
// consistency: without it, a pass right after another one would compare with a status that has just been replaced.
func Setup(mgr ctrl.Manager) error {
	pods, err := operatormanager.AddCluster(mgr, cache.Options{DefaultTransform: slimPod, ReaderFailOnMissingInformer: true})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1.Foo{}, friendIndex, friendOf); err != nil {
		return fmt.Errorf("failed to index Foos: %w", err)
	}
	if err := pods.GetFieldIndexer().IndexField(ctx, podMetadata(), podIndex, nameOf); err != nil {
		return fmt.Errorf("failed to index Pods: %w", err)
	}
	reconciler := &Reconciler{Client: mgr.GetClient(), Pods: pods.GetClient(), Recorder: mgr.GetEventRecorder(name)}
	err = builder.ControllerManagedBy(mgr).
		Named(name).
		For(&v1.Foo{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind(pods.GetCache(), podMetadata(),
			handler.TypedEnqueueRequestsFromMapFunc(lookingFor(mgr.GetClient())), comesOrGoes())).
		WithOptions(operatormanager.ControllerOptions()).
		Complete(reconcile.AsReconciler(mgr.GetClient(), reconciler))
	if err != nil {
		return fmt.Errorf("failed to set up the controller of Foos: %w", err)
	}
	return nil
}

// podMetadata is the kind Pod without spec and status: neither is sent by the API server.
func podMetadata() *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return out
}

// slimPod keeps what identifies a Pod. It passes anything else through: the cache also hands over tombstones.
func slimPod(in any) (any, error) {
	if pod, ok := in.(*metav1.PartialObjectMetadata); ok {
		pod.ObjectMeta = metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		}
	}
	return in, nil
}

// friendOf returns the key of a Foo in its index: the name that it looks for.
func friendOf(object client.Object) []string {
	if foo, ok := object.(*v1.Foo); ok && foo.Spec.Name != "" {
		return []string{foo.Spec.Name}
	}
	return nil
}

// nameOf returns the key of a Pod in its index: its name, whatever namespace it is in.
func nameOf(object client.Object) []string { return []string{object.GetName()} }

// lookingFor maps a Pod to the Foos, of all namespaces, that look for its name.
func lookingFor(foos client.Reader) handler.TypedMapFunc[*metav1.PartialObjectMetadata, reconcile.Request] {
	return func(ctx context.Context, pod *metav1.PartialObjectMetadata) []reconcile.Request {
		list := &v1.FooList{}
		if err := foos.List(ctx, list, client.MatchingFields{friendIndex: pod.Name}); err != nil {
			log.FromContext(ctx).Error(err, "Failed to find the Foos that look for a Pod", "pod", pod.Name)
			return nil
		}
		out := make([]reconcile.Request, 0, len(list.Items))
		for i := range list.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return out
	}
}

// comesOrGoes passes the arrival of a Pod and its end. Whatever changes in between, its status above all, changes nobody's
// happiness. An end that was missed is seen when the cache lists the Pods anew, and what happened while the operator was
// not running when it starts: each Foo has a pass then.
func comesOrGoes() predicate.TypedPredicate[*metav1.PartialObjectMetadata] {
	return predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
		UpdateFunc:  func(event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool { return false },
		GenericFunc: func(event.TypedGenericEvent[*metav1.PartialObjectMetadata]) bool { return false },
	}
}
