package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

const (
	fieldOwner = client.FieldOwner("sidecarset-operator")
	// staleRetry is when a reconcile is repeated that was made from an old state.
	staleRetry = 50 * time.Millisecond
)

// Reconciler reconciles SidecarSets.
type Reconciler struct {
	Client client.Client
	// Pods reads the few fields of Pods that are cached, and writes Pods, with read-your-writes consistency.
	Pods client.Client
	// API reads whole Pods.
	API      client.Reader
	Recorder events.EventRecorder
}

// Reconcile counts the Pods of a SidecarSet, updates one of them if it is time, and writes the status. Nothing is remembered between
// reconciles: reads wait for the own writes, and the event of an updated Pod asks for the next reconcile.
func (r *Reconciler) Reconcile(ctx context.Context, set *v1alpha1.SidecarSet) (reconcile.Result, error) {
	if !set.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	counts, err := r.count(ctx, set)
	var updateErr error
	if err == nil && counts.next != nil && !set.Spec.Paused && sidecar.Admitted(set) {
		updateErr = r.update(ctx, set, counts.next)
		if apierrors.IsConflict(updateErr) || apierrors.IsNotFound(updateErr) {
			return reconcile.Result{RequeueAfter: staleRetry}, nil
		}
		counts, err = r.count(ctx, set)
	}
	if err != nil {
		return reconcile.Result{}, errors.Join(updateErr, err)
	}
	return reconcile.Result{}, errors.Join(updateErr, r.writeStatus(ctx, set, computeStatus(set, counts, updateErr)))
}

func (r *Reconciler) count(ctx context.Context, set *v1alpha1.SidecarSet) (counts, error) {
	pods := &corev1.PodList{}
	if err := r.Pods.List(ctx, pods, client.MatchingFields{setIndex: set.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return counts{}, fmt.Errorf("failed to list Pods: %w", err)
	}
	return countPods(set, pods.Items), nil
}

// update gives one Pod the declared images. It fails with a conflict if the Pod has changed since it was counted.
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

// writeStatus patches a status that differs, then sends an Event for each new condition and each new reason of a warning.
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

// What the sidecars of a Pod are: as declared, declared with another image, or declared in another way.
const (
	updated = iota
	outdated
	notUpdatable
)

// counts is what the Pods of a SidecarSet come to.
type counts struct {
	matched, ready int32
	// of counts the Pods in each state of their sidecars.
	of [3]int32
	// next is the Pod to update now, waiting the one that has to become ready first; both may be nil.
	next, waiting *corev1.Pod
}

// countPods counts the Pods that carry the sidecars of a SidecarSet.
func countPods(set *v1alpha1.SidecarSet, pods []corev1.Pod) counts {
	selector, declared := sidecar.Selector(set), sidecar.HashesOf(&set.Spec)
	var out counts
	// The first by name in each state of the sidecars, of those that are available and of those that are not.
	var available, broken [3]*corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if !sidecar.Active(pod) || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		state := outdated
		switch carried := sidecar.Recorded(pod)[set.Name]; {
		case carried == declared:
			state = updated
		case carried.WithoutImage != declared.WithoutImage:
			state = notUpdatable
		}
		out.matched++
		out.of[state]++
		group, ready := &broken, sidecar.Ready(pod)
		if ready {
			out.ready++
		}
		if ready && sidecar.Settled(pod) {
			group = &available
		}
		group[state] = first(group[state], pod)
	}
	// At most one Pod is unavailable because of an update. A Pod that is not available anyway loses nothing, and may need just the
	// new image; but it has to wait for an updated one in trouble, which the new image may have caused.
	switch {
	case out.of[outdated] == 0:
	case broken[updated] != nil:
		out.waiting = broken[updated]
	case broken[outdated] != nil:
		out.next = broken[outdated]
	case broken[notUpdatable] != nil:
		out.waiting = broken[notUpdatable]
	default:
		out.next = available[outdated]
	}
	return out
}

func first(a, b *corev1.Pod) *corev1.Pod {
	if a == nil || cmp.Or(cmp.Compare(b.Namespace, a.Namespace), cmp.Compare(b.Name, a.Name)) < 0 {
		return b
	}
	return a
}

// computeStatus returns the status of a SidecarSet from its counts and the error of the update of a Pod.
func computeStatus(set *v1alpha1.SidecarSet, counts counts, updateErr error) v1alpha1.SidecarSetStatus {
	status := v1alpha1.SidecarSetStatus{
		ObservedGeneration: set.Generation, MatchedPods: counts.matched, UpdatedPods: counts.of[updated], ReadyPods: counts.ready,
		Conditions: slices.Clone(set.Status.Conditions),
	}
	say := func(conditionType string, conditionStatus metav1.ConditionStatus, reason, message string) {
		message = strings.ToValidUTF8(message[:min(len(message), 1000)], "") // an Event takes 1024 bytes
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: conditionType, Status: conditionStatus, Reason: reason, Message: message, ObservedGeneration: set.Generation,
		})
	}
	if counts.of[notUpdatable] == 0 {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionNotUpdatableInPlace)
	} else {
		say(v1alpha1.ConditionNotUpdatableInPlace, metav1.ConditionTrue, v1alpha1.ReasonOtherFieldsChanged, fmt.Sprintf(
			"%d of %d Pods cannot be updated in place because more than the image changed; recreate them to update them",
			counts.of[notUpdatable], counts.matched))
	}
	left := fmt.Sprintf("%d of %d Pods run another image than declared", counts.of[outdated], counts.matched)
	switch updating := v1alpha1.ConditionUpdating; {
	case counts.of[outdated] == 0:
		meta.RemoveStatusCondition(&status.Conditions, updating)
	case set.Spec.Paused:
		say(updating, metav1.ConditionFalse, v1alpha1.ReasonPaused, left+"; spec.paused blocks the update")
	case !sidecar.Admitted(set):
		say(updating, metav1.ConditionFalse, v1alpha1.ReasonNotAdmitted, left+"; this spec was stored without its webhook, apply it again")
	case updateErr != nil:
		say(updating, metav1.ConditionFalse, v1alpha1.ReasonUpdateFailed, left+": "+updateErr.Error())
	case counts.waiting != nil:
		say(updating, metav1.ConditionTrue, v1alpha1.ReasonWaitingForPod,
			fmt.Sprintf("%s; waiting for Pod %s to become ready, because one Pod at a time is updated", left, klog.KObj(counts.waiting)))
	default:
		say(updating, metav1.ConditionTrue, v1alpha1.ReasonUpdateInProgress, left+"; they are updated one at a time")
	}
	return status
}
