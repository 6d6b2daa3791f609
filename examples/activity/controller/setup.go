// Package controller runs Activities: it shows how to do something exactly once with a control loop that may be ended and
// begun again at any moment. Reconcile says how; what an Activity's Pod looks like and what its status says are pure
// functions in pod.go and status.go.
package controller

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/example/nginx-operator/examples/activity/api/v1"
	operatormanager "github.com/example/nginx-operator/internal/manager"
	"github.com/example/nginx-operator/internal/metadata"
)

// Rights of this example, no more than it uses. The right to update finalizers is asked for where
// OwnerReferencesPermissionEnforcement is on (OpenShift), for a reference that blocks the deletion of its owner.
//
// +kubebuilder:rbac:groups=ego.example.com,resources=activities,verbs=get;list;watch
// +kubebuilder:rbac:groups=ego.example.com,resources=activities/status,verbs=patch
// +kubebuilder:rbac:groups=ego.example.com,resources=activities/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// DefaultImage is the container image of the commands where ImageEnv is not set. It needs /bin/sh.
	DefaultImage = "docker.io/library/busybox:1.36"
	// ImageEnv is the environment variable that names another one.
	ImageEnv = "RELATED_IMAGE_ACTIVITY"

	// name is that of the controller and of the source of its Events.
	name = "activity"
	// heldIndex is the index of Pods that are being deleted and have our finalizer, by the name of their Activity.
	heldIndex = "held"
)

// Setup adds the controller to the manager, whose scheme has to know Activities and whose client has to have
// read-your-writes consistency. Of Pods only those of Activities are cached.
func Setup(mgr ctrl.Manager) error {
	pods, err := operatormanager.AddCluster(mgr, cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultLabelSelector:        labels.SelectorFromSet(labels.Set{metadata.LabelManagedBy: managedBy}),
		DefaultTransform:            cache.TransformStripManagedFields(),
	})
	if err != nil {
		return err
	}
	if err := pods.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, heldIndex, heldFor); err != nil {
		return fmt.Errorf("failed to index Pods: %w", err)
	}
	reconciler := &Reconciler{
		Client:   mgr.GetClient(),
		Pods:     pods.GetClient(),
		Reader:   mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorder(name),
		Image:    cmp.Or(os.Getenv(ImageEnv), DefaultImage),
	}
	owner := handler.TypedEnqueueRequestForOwner[*corev1.Pod](mgr.GetScheme(), mgr.GetRESTMapper(), &v1.Activity{}, handler.OnlyControllerOwner())
	err = builder.ControllerManagedBy(mgr).
		Named(name).
		For(&v1.Activity{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind(pods.GetCache(), &corev1.Pod{}, owner, processChanged())).
		WithOptions(operatormanager.ControllerOptions()).
		Complete(reconciler)
	if err != nil {
		return fmt.Errorf("failed to set up the controller of Activities: %w", err)
	}
	return nil
}

// heldFor returns the key of a Pod in heldIndex, none where nothing holds it or where it is not deleted.
func heldFor(object client.Object) []string {
	owner := metav1.GetControllerOf(object)
	if owner == nil || object.GetDeletionTimestamp() == nil || !slices.Contains(object.GetFinalizers(), finalizer) {
		return nil
	}
	return []string{owner.Name}
}

// processChanged passes a Pod that comes or goes, and one of which the status of its Activity would say something else
// than before, or which has to be let go. What else happens to a Pod is not worth a pass.
func processChanged() predicate.TypedPredicate[*corev1.Pod] {
	return predicate.TypedFuncs[*corev1.Pod]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool {
			return !equality.Semantic.DeepEqual(computeStatus(v1.ActivityStatus{}, e.ObjectOld), computeStatus(v1.ActivityStatus{}, e.ObjectNew)) ||
				!slices.Equal(heldFor(e.ObjectOld), heldFor(e.ObjectNew))
		},
		GenericFunc: func(event.TypedGenericEvent[*corev1.Pod]) bool { return false },
	}
}
