// Package controller runs Activities. It shows how a control loop performs an action exactly once,
// even though the loop can be killed and restarted at any moment.
package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/example/nginx-operator/examples/activity/api/v1"
	"github.com/example/nginx-operator/pkg/manager"
)

// OwnerReferencesPermissionEnforcement (OpenShift) requires the permission to update finalizers.
// +kubebuilder:rbac:groups=ego.example.com,resources=activities,verbs=get;list;watch
// +kubebuilder:rbac:groups=ego.example.com,resources=activities/status,verbs=patch
// +kubebuilder:rbac:groups=ego.example.com,resources=activities/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// defaultImage is the container image of the commands. RELATED_IMAGE_ACTIVITY overrides it. The
// image needs /bin/sh.
const defaultImage = "docker.io/library/busybox:1.36"

// Reconciler runs Activities. It reads from the API server, because its decisions can be final and
// a cache can be stale.
type Reconciler struct {
	API          client.Reader
	Client, Pods client.Client
	Recorder     events.EventRecorder
	Image        string
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager) error {
	// The manager's cache contains other Pods.
	pods, err := cluster.New(mgr.GetConfig(), func(o *cluster.Options) {
		o.Scheme = mgr.GetScheme()
		o.Cache.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{managedBy: operator})
		o.Cache.DefaultTransform = cache.TransformStripManagedFields()
	})
	if err != nil {
		return fmt.Errorf("failed to make a cache of Pods: %w", err)
	}
	owner := handler.TypedEnqueueRequestForOwner[*corev1.Pod](
		mgr.GetScheme(), mgr.GetRESTMapper(), &v1.Activity{}, handler.OnlyControllerOwner())
	// An update of a Pod is relevant if it changes the status of the Activity.
	counts := predicate.TypedFuncs[*corev1.Pod]{UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool {
		before, after := computeStatus(v1.ActivityStatus{}, e.ObjectOld), computeStatus(v1.ActivityStatus{}, e.ObjectNew)
		return !equality.Semantic.DeepEqual(before, after)
	}}
	reconciler := &Reconciler{
		Client: mgr.GetClient(), Pods: pods.GetClient(), API: mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorder("activity"), Image: cmp.Or(os.Getenv("RELATED_IMAGE_ACTIVITY"), defaultImage),
	}
	return errors.Join(mgr.Add(pods), ctrl.NewControllerManagedBy(mgr).
		For(&v1.Activity{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind(pods.GetCache(), &corev1.Pod{}, owner, counts)).
		WithOptions(manager.ControllerOptions()).
		Complete(reconcile.AsReconciler(mgr.GetClient(), reconciler)))
}

// Reconcile takes one Activity through three steps: create the Pod with a scheduling gate, which
// prevents it from running; write the status, which records the Pod; and remove the gate. If the
// operator is killed in between, the next reconcile continues. A Pod that the status does not
// record has not run. A Pod that the status records is not created again.
func (r *Reconciler) Reconcile(ctx context.Context, activity *v1.Activity) (reconcile.Result, error) {
	if activity.Status.Finished() {
		return reconcile.Result{}, nil
	}
	current := &v1.Activity{}
	err := r.API.Get(ctx, client.ObjectKeyFromObject(activity), current)
	if err == nil && current.DeletionTimestamp.IsZero() { // the garbage collector deletes the Pod
		err = r.run(ctx, current)
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// run performs the remaining steps.
func (r *Reconciler) run(ctx context.Context, activity *v1.Activity) error {
	pod, status := &corev1.Pod{}, activity.Status
	err := r.API.Get(ctx, client.ObjectKey{Namespace: activity.Namespace, Name: podName(activity)}, pod)
	switch isGone := apierrors.IsNotFound(err); {
	case isGone && status.Pod != "":
		fail(&status, "Pod %q was deleted before its end was seen; an Activity does not run twice", status.Pod)
		err = nil
	case isGone:
		pod, err = r.start(ctx, activity, &status)
	case err == nil && !metav1.IsControlledBy(pod, activity):
		fail(&status, "Pod %q exists and is not controlled by this Activity; delete it and create the Activity again", pod.Name)
	}
	if err == nil && !status.Finished() {
		status = computeStatus(status, pod)
	}
	err = errors.Join(err, r.writeStatus(ctx, activity, status))
	if err != nil || status.Finished() || len(pod.Spec.SchedulingGates) == 0 {
		return err
	}
	before := pod.DeepCopy()
	pod.Spec.SchedulingGates = slices.DeleteFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == gate })
	return r.Pods.Patch(ctx, pod, client.MergeFrom(before))
}

// start creates the Pod. If that is not possible, the status contains the reason. An error is
// retried.
func (r *Reconciler) start(ctx context.Context, activity *v1.Activity, status *v1.ActivityStatus) (*corev1.Pod, error) {
	if host := activity.Spec.Host; host != "" {
		node := &metav1.PartialObjectMetadata{}
		node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
		if err := r.API.Get(ctx, client.ObjectKey{Name: host}, node); apierrors.IsNotFound(err) {
			fail(status, "host %q is no node of this cluster; create the Activity again with a host of kubectl get nodes, or without one", host)
			return nil, nil
		} else if err != nil {
			return nil, fmt.Errorf("failed to read Node %q: %w", host, err)
		}
	}
	pod := desiredPod(activity, r.Image)
	err := controllerutil.SetControllerReference(activity, pod, r.Client.Scheme())
	if err == nil {
		err = r.Pods.Create(ctx, pod)
	}
	if apierrors.IsInvalid(err) {
		fail(status, "%s", err)
		return nil, nil
	}
	if apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		// A quota or Pod Security can change, so the Activity does not fail.
		status.Prosta, status.Message = v1.Pending, err.Error()
	}
	return pod, err
}

func fail(status *v1.ActivityStatus, format string, args ...any) {
	status.Prosta, status.Message = v1.Failed, fmt.Sprintf(format, args...)
}

// writeStatus patches the status if it differs. Then it sends an Event if the Pod was created or
// the process ended.
func (r *Reconciler) writeStatus(ctx context.Context, activity *v1.Activity, status v1.ActivityStatus) error {
	if equality.Semantic.DeepEqual(activity.Status, status) {
		return nil
	}
	patched := activity.DeepCopy()
	patched.Status = status
	patch := client.MergeFromWithOptions(activity, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, patched, patch); err != nil {
		return fmt.Errorf("failed to write status: %w", err)
	}
	if activity.Status.Pod == "" && status.Pod != "" {
		r.Recorder.Eventf(activity, nil, corev1.EventTypeNormal, "Created", "Reconcile", "runs in Pod %q", status.Pod)
	}
	if status.Prosta == v1.Succeeded {
		r.Recorder.Eventf(activity, nil, corev1.EventTypeNormal, "Succeeded", "Reconcile", "exit code 0")
	}
	if status.Prosta == v1.Failed {
		r.Recorder.Eventf(activity, nil, corev1.EventTypeWarning, "Failed", "Reconcile", "%s", status.Message)
	}
	return nil
}
