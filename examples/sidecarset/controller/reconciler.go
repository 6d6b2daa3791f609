package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

const (
	// fieldOwner is the field manager under which the operator writes, and its name in Events.
	fieldOwner = client.FieldOwner("sidecarset-operator")
	// staleRetry is when a pass is repeated that was made from a state which had changed meanwhile.
	staleRetry = 50 * time.Millisecond
	// again is when a pass is repeated that has more to do: at once, after others had their turn.
	again = time.Millisecond
)

// reasonPodUpdated is the reason of the Event for each Pod that got new images.
const reasonPodUpdated = "PodUpdated"

// Reconciler keeps the status of SidecarSets and updates their Pods. All fields are required.
type Reconciler struct {
	// Sets reads SidecarSets from the cache and writes their status.
	Sets client.Client
	// Pods writes Pods, and Reader reads them from the API server: the cache has not all of a Pod.
	Pods   client.Writer
	Reader client.Reader
	// Tally is the account of the Pods, which the watch keeps.
	Tally *Tally
	// Recorder sends the Events.
	Recorder events.EventRecorder
}

var _ reconcile.Reconciler = &Reconciler{}

// Reconcile is one pass over one SidecarSet: ask the account, update one Pod at most, write the status. What is remembered
// between passes is the account alone, which a start builds anew. A failure of the update ends in the status, and is returned
// to be tried again with back-off.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &v1alpha1.SidecarSet{}
	if err := r.Sets.Get(ctx, request.NamespacedName, set); err != nil {
		if apierrors.IsNotFound(err) {
			r.Tally.Forget(request.Name)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("failed to read SidecarSet: %w", err)
	}
	if !set.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	selector, hashes := sidecar.Selector(set), sidecar.HashesOf(&set.Spec)
	result := outcome{counts: r.Tally.Ask(set.Name, selector, hashes), invalid: sidecar.Validate(set)}
	retry := time.Duration(0)
	if next := result.counts.Next; next != nil && !set.Spec.Paused && len(result.invalid) == 0 {
		result.failure = r.update(ctx, set, *next)
		if apierrors.IsConflict(result.failure) || apierrors.IsNotFound(result.failure) {
			return reconcile.Result{RequeueAfter: staleRetry}, nil
		}
		result.counts = r.Tally.Ask(set.Name, selector, hashes)
		if result.failure == nil && result.counts.Next != nil {
			retry = again
		}
	}
	statusErr := r.writeStatus(ctx, set, computeStatus(set, result))
	if err := errors.Join(result.failure, statusErr); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: retry}, nil
}

// update gives one Pod the declared images. Errors that mean that the Pod is not as it was thought to be are conflicts, or
// that it was not found.
func (r *Reconciler) update(ctx context.Context, set *v1alpha1.SidecarSet, key types.NamespacedName) error {
	live := &corev1.Pod{}
	if err := r.Reader.Get(ctx, key, live); err != nil {
		return fmt.Errorf("failed to read Pod %s: %w", key, err)
	}
	carried, found := sidecar.Recorded(live.Annotations)[set.Name]
	now := sidecar.HashesOf(&set.Spec)
	if !found || !sidecar.Active(live) || carried == now || carried.WithoutImage != now.WithoutImage {
		r.Tally.Wrote(live) // the watch is behind
		return apierrors.NewConflict(corev1.Resource("pods"), key.String(), errors.New("it has changed since it was counted"))
	}
	updated := sidecar.UpdateImages(live, set)
	// What changed meanwhile, by somebody or by the update of another SidecarSet, must not be undone.
	patch := client.StrategicMergeFrom(live, client.MergeFromWithOptimisticLock{})
	if err := r.Pods.Patch(ctx, updated, patch, fieldOwner); err != nil {
		return fmt.Errorf("failed to update Pod %s: %w", key, err)
	}
	r.Tally.Wrote(updated)
	log.FromContext(ctx).Info("Updated the sidecars of a Pod", "pod", klog.KObj(updated))
	r.Recorder.Eventf(set, updated, corev1.EventTypeNormal, reasonPodUpdated, "Update", "updated the sidecars of Pod %s in place", key)
	return nil
}

// writeStatus writes a status that differs with one patch, then tells of the conditions that are new in it.
func (r *Reconciler) writeStatus(ctx context.Context, set *v1alpha1.SidecarSet, status v1alpha1.SidecarSetStatus) error {
	if equality.Semantic.DeepEqual(set.Status, status) {
		return nil
	}
	patched := set.DeepCopy()
	patched.Status = status
	err := r.Sets.Status().Patch(ctx, patched, client.MergeFrom(set), fieldOwner)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("failed to write status: %w", err)
	}
	for _, condition := range newlyTold(set.Status.Conditions, status.Conditions) {
		eventType := corev1.EventTypeNormal
		if isWarning(condition) {
			eventType = corev1.EventTypeWarning
		}
		// Named by the type where that says more than the reason.
		r.Recorder.Eventf(set, nil, eventType, eventReason(condition), "Reconcile", "%s", condition.Message)
	}
	return nil
}

// newlyTold returns the conditions that were not there before, or had another reason. Waiting and going on take turns with
// each Pod, and are not worth an Event each time.
func newlyTold(old, updated []metav1.Condition) []metav1.Condition {
	var out []metav1.Condition
	for _, condition := range updated {
		before := meta.FindStatusCondition(old, condition.Type)
		if before == nil || before.Status != condition.Status || isWarning(condition) && before.Reason != condition.Reason {
			out = append(out, condition)
		}
	}
	return out
}

func isWarning(condition metav1.Condition) bool {
	return condition.Type != v1alpha1.ConditionUpdating || condition.Reason == v1alpha1.ReasonUpdateFailed
}

func eventReason(condition metav1.Condition) string {
	if condition.Type == v1alpha1.ConditionNotUpdatableInPlace {
		return condition.Type
	}
	return condition.Reason
}
