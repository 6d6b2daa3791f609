package sidecar

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

// maxRecord bounds the annotations that are read. Every client that may write a Pod can write them.
const maxRecord = 16 << 10

// Slim removes all irrelevant fields from a Pod. It returns other objects unchanged, because the
// cache also passes tombstones.
func Slim(in any) (any, error) {
	pod, isPod := in.(*corev1.Pod)
	if !isPod {
		return in, nil
	}
	slim := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		DeletionTimestamp: pod.DeletionTimestamp, Labels: pod.Labels,
	}}
	for _, key := range []string{AnnotationHash, AnnotationHashWithoutImage, AnnotationInPlaceUpdate} {
		if value := pod.Annotations[key]; value != "" && len(value) <= maxRecord {
			metav1.SetMetaDataAnnotation(&slim.ObjectMeta, key, value)
		}
	}
	slim.Status.Phase = pod.Status.Phase
	slim.Status.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions), func(condition corev1.PodCondition) bool {
		return condition.Type != corev1.PodReady
	})
	replaced := Replaced(slim)
	slim.Status.ContainerStatuses = slices.DeleteFunc(slices.Clone(pod.Status.ContainerStatuses), func(status corev1.ContainerStatus) bool {
		_, found := replaced[status.Name]
		return !found
	})
	return slim, nil
}

// States of the sidecars of a Pod: as in the spec, different only in images, or different in other
// fields.
const (
	updated = iota
	outdated
	notUpdatable
)

// Counts summarizes the Pods of a SidecarSet.
type Counts struct {
	// Next is the Pod to update now, or nil if there is none.
	Next *corev1.Pod
	// waiting is the Pod that must become ready first, or nil if there is none.
	waiting        *corev1.Pod
	matched, ready int32
	// of is the number of Pods in each state of their sidecars.
	of [3]int32
}

// Count counts the Pods that carry the sidecars of a SidecarSet.
func Count(set *v1alpha1.SidecarSet, pods []corev1.Pod) Counts {
	selector, declared := Selector(set), HashesOf(&set.Spec)
	var out Counts
	// The first Pod by namespace and name in each state of the sidecars, for available and for
	// other Pods.
	var available, broken [3]*corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if !Active(pod) || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		state := outdated
		switch carried := Recorded(pod)[set.Name]; {
		case carried == declared:
			state = updated
		case carried.WithoutImage != declared.WithoutImage:
			state = notUpdatable
		}
		out.matched++
		out.of[state]++
		group, ready := &broken, Ready(pod)
		if ready {
			out.ready++
		}
		if ready && Settled(pod) {
			group = &available
		}
		group[state] = first(group[state], pod)
	}
	// An update may make at most one Pod unavailable. An unavailable Pod can be updated, because it
	// loses nothing and the new image may fix it. But an unavailable updated Pod must become ready
	// first, because the new image may be the cause.
	switch {
	case out.of[outdated] == 0:
	case broken[updated] != nil:
		out.waiting = broken[updated]
	case broken[outdated] != nil:
		out.Next = broken[outdated]
	case broken[notUpdatable] != nil:
		out.waiting = broken[notUpdatable]
	default:
		out.Next = available[outdated]
	}
	return out
}

func first(a, b *corev1.Pod) *corev1.Pod {
	if a == nil || cmp.Or(cmp.Compare(b.Namespace, a.Namespace), cmp.Compare(b.Name, a.Name)) < 0 {
		return b
	}
	return a
}

// Status returns the status of a SidecarSet from its counts and the error of the update of a Pod.
func Status(set *v1alpha1.SidecarSet, counts Counts, updateErr error) v1alpha1.SidecarSetStatus {
	status := v1alpha1.SidecarSetStatus{
		ObservedGeneration: set.Generation, MatchedPods: counts.matched, UpdatedPods: counts.of[updated], ReadyPods: counts.ready,
		Conditions: slices.Clone(set.Status.Conditions),
	}
	say := func(conditionType string, conditionStatus metav1.ConditionStatus, reason, message string) {
		// The limit for an Event is 1024 bytes.
		message = strings.ToValidUTF8(message[:min(len(message), 1000)], "")
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
	case !Admitted(set):
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
