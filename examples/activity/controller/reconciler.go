package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/examples/activity/api/v1"
)

// staleRetry is when a pass is repeated that was made from an Activity which had changed meanwhile.
const staleRetry = 50 * time.Millisecond

// Reconciler runs Activities. All fields are required.
type Reconciler struct {
	// Client reads Activities from the cache and writes their status, Pods reads the Pods of Activities from theirs and
	// writes them, both with read-your-writes consistency. Such a client caches what it writes, so Client must not write
	// Pods: its cache would be that of all Pods of the cluster.
	Client, Pods client.Client
	// Reader reads from the API server. It is asked before what cannot be undone, for a cache may be behind.
	Reader client.Reader
	// Recorder sends the Events.
	Recorder events.EventRecorder
	// Image is the container image in which the commands run. It needs /bin/sh.
	Image string
}

var _ reconcile.Reconciler = &Reconciler{}

// Reconcile is one pass over one Activity. In the order in which they are done, the steps are:
//
//  1. create the Pod, with a finalizer that keeps it until step 3;
//  2. write the status, which from now on names the Pod;
//  3. take the finalizer away.
//
// Whatever ends the operator between two of them, the next pass finds either the Pod or its name in the status, and
// makes no other: the command never runs twice. It takes requests and not objects, because a Pod whose Activity has been
// deleted before step 3 has to be let go as well.
//
// Nothing here repairs the Pod, so it is not written through internal/apply: what has been started is not started again.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	activity := &v1.Activity{}
	if err := r.Client.Get(ctx, request.NamespacedName, activity); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("failed to read the Activity: %w", err)
		}
		return reconcile.Result{}, r.releaseOrphans(ctx, request, activity)
	}
	if err := r.releaseOrphans(ctx, request, activity); err != nil {
		return reconcile.Result{}, err
	}
	if !activity.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the Pod. What is left to do is to let it go.
		pod, err := r.pod(ctx, activity)
		if err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, r.release(ctx, pod)
	}
	if activity.Status.Finished() && activity.Status.Pod == "" {
		return reconcile.Result{}, nil // it was refused
	}
	err := r.run(ctx, activity)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: staleRetry}, nil
	}
	return reconcile.Result{}, err
}

// run does what is left of the three steps.
func (r *Reconciler) run(ctx context.Context, activity *v1.Activity) error {
	pod, err := r.pod(ctx, activity)
	if err != nil {
		return err
	}
	if pod == nil && activity.Status.Pod == "" {
		var status v1.ActivityStatus
		if pod, status, err = r.start(ctx, activity); pod == nil {
			return errors.Join(err, r.writeStatus(ctx, activity, status))
		}
	}
	if pod != nil && !metav1.IsControlledBy(pod, activity) {
		return r.writeStatus(ctx, activity, refused(activity.Status, fmt.Sprintf("Pod %q exists already and is not the Activity's; delete it and create the Activity again", pod.Name)))
	}
	if err := r.writeStatus(ctx, activity, computeStatus(activity.Status, pod)); err != nil {
		return err
	}
	return r.release(ctx, pod)
}

// pod returns the Pod of an Activity, or what has its name, nil where there is none. That there is none is the API server's
// word, because both things that follow are final: a first run, or the end of one that was not seen. An Activity that
// has ended does not care.
func (r *Reconciler) pod(ctx context.Context, activity *v1.Activity) (*corev1.Pod, error) {
	key := client.ObjectKey{Namespace: activity.Namespace, Name: podName(activity)}
	pod := &corev1.Pod{}
	err := r.Pods.Get(ctx, key, pod)
	if apierrors.IsNotFound(err) && !activity.Status.Finished() {
		err = r.Reader.Get(ctx, key, pod)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read Pod %q: %w", key.Name, err)
	}
	return pod, nil
}

// start makes the Pod, unless it must not or cannot be. Without a Pod it returns the status that says why; with an error
// it is worth another attempt.
func (r *Reconciler) start(ctx context.Context, activity *v1.Activity) (*corev1.Pod, v1.ActivityStatus, error) {
	current := &v1.Activity{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(activity), current); err != nil {
		return nil, activity.Status, client.IgnoreNotFound(err)
	}
	if current.UID != activity.UID || !current.DeletionTimestamp.IsZero() || current.Status.Pod != "" || current.Status.Finished() {
		return nil, activity.Status, nil // the event that says so is on its way
	}
	if host := activity.Spec.Host; host != "" {
		node := &metav1.PartialObjectMetadata{}
		node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
		err := r.Reader.Get(ctx, client.ObjectKey{Name: host}, node)
		if apierrors.IsNotFound(err) {
			return nil, refused(activity.Status, fmt.Sprintf("host %q is no node of this cluster; create the Activity again with a host of kubectl get nodes, or without one", host)), nil
		}
		if err != nil {
			return nil, activity.Status, fmt.Errorf("failed to read Node %q: %w", host, err)
		}
	}
	pod := desiredPod(activity, r.Image)
	if err := controllerutil.SetControllerReference(activity, pod, r.Client.Scheme()); err != nil {
		return nil, activity.Status, fmt.Errorf("failed to own Pod %q: %w", pod.Name, err)
	}
	err := r.Pods.Create(ctx, pod)
	switch {
	case err == nil:
		log.FromContext(ctx).Info("Created Pod", "pod", pod.Name)
		return pod, activity.Status, nil
	case apierrors.IsInvalid(err):
		return nil, refused(activity.Status, err.Error()), nil
	case apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// A quota, or the namespace's Pod Security: both may change.
		return nil, waiting(activity.Status, err.Error()), fmt.Errorf("failed to create Pod %q: %w", pod.Name, err)
	default:
		return nil, activity.Status, fmt.Errorf("failed to create Pod %q: %w", pod.Name, err)
	}
}

// writeStatus writes a status that differs with one patch, then tells of what changed.
func (r *Reconciler) writeStatus(ctx context.Context, activity *v1.Activity, status v1.ActivityStatus) error {
	before := activity.Status
	if equality.Semantic.DeepEqual(before, status) {
		return nil
	}
	patched := activity.DeepCopy()
	patched.Status = status
	// The resourceVersion makes it a precondition that this is still the same Activity, and as it was read.
	patch := client.MergeFromWithOptions(activity, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, patched, patch); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("failed to write status: %w", err)
	}
	log.FromContext(ctx).Info("Wrote status", "prosta", status.Prosta, "message", status.Message)
	for _, one := range told(before, status) {
		r.Recorder.Eventf(activity, nil, one.eventType, one.reason, "Reconcile", "%s", one.message)
	}
	return nil
}

// release takes our finalizer from a Pod, which may be nil. Those of others stay.
func (r *Reconciler) release(ctx context.Context, pod *corev1.Pod) error {
	if pod == nil || !controllerutil.ContainsFinalizer(pod, finalizer) {
		return nil
	}
	released := pod.DeepCopy()
	controllerutil.RemoveFinalizer(released, finalizer)
	err := r.Pods.Patch(ctx, released, client.StrategicMergeFrom(pod))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("failed to release Pod %q: %w", pod.Name, err)
	}
	return nil
}

// releaseOrphans lets Pods go that are being deleted and whose Activity of the requested name is gone, or was another
// one than the one that has the name now: nobody will write their status.
func (r *Reconciler) releaseOrphans(ctx context.Context, request reconcile.Request, cached *v1.Activity) error {
	pods := &corev1.PodList{}
	if err := r.Pods.List(ctx, pods, client.InNamespace(request.Namespace), client.MatchingFields{heldIndex: request.Name}); err != nil {
		return fmt.Errorf("failed to list Pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		owner := metav1.GetControllerOf(pod).UID
		if owner == cached.UID {
			continue
		}
		current := &v1.Activity{}
		if err := r.Reader.Get(ctx, request.NamespacedName, current); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("failed to read the Activity: %w", err)
		}
		if owner == current.UID {
			continue
		}
		if err := r.release(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}
