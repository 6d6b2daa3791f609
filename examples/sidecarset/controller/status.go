package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

// outcome is what a pass came to.
type outcome struct {
	// counts is the account of the SidecarSet, after the update of a Pod where there was one.
	counts Counts
	// invalid is what is wrong with the SidecarSet; nothing is done then.
	invalid field.ErrorList
	// failure is that of the update of a Pod, nil where there was none or it succeeded.
	failure error
}

// computeStatus returns the status for what a pass came to. From the status that the object has it takes over only the
// times of transitions.
func computeStatus(set *v1alpha1.SidecarSet, result outcome) v1alpha1.SidecarSetStatus {
	status := v1alpha1.SidecarSetStatus{
		ObservedGeneration: set.Generation,
		MatchedPods:        int32(result.counts.Matched), // #nosec G115 -- no cluster has that many Pods
		UpdatedPods:        int32(result.counts.Updated), // #nosec G115
		ReadyPods:          int32(result.counts.Ready),   // #nosec G115
	}
	for _, condition := range conditions(set, result) {
		condition.ObservedGeneration = set.Generation
		if before := meta.FindStatusCondition(set.Status.Conditions, condition.Type); before != nil {
			status.Conditions = append(status.Conditions, *before)
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// conditions returns those that have something to tell, none where all Pods are as declared.
func conditions(set *v1alpha1.SidecarSet, result outcome) []metav1.Condition {
	var out []metav1.Condition
	add := func(conditionType string, status metav1.ConditionStatus, reason, message string) {
		out = append(out, metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: truncate(message)})
	}
	counts := result.counts
	if len(result.invalid) > 0 {
		add(v1alpha1.ConditionInvalid, metav1.ConditionTrue, v1alpha1.ReasonInvalidSpec,
			"nothing is injected and nothing is updated: "+result.invalid.ToAggregate().Error())
	}
	if counts.NotUpdatable > 0 {
		add(v1alpha1.ConditionNotUpdatableInPlace, metav1.ConditionTrue, v1alpha1.ReasonOtherFieldsChanged,
			fmt.Sprintf("%d of %d Pods cannot be updated in place, because more than the image changed; each gets the sidecars of now when it is created anew",
				counts.NotUpdatable, counts.Matched))
	}
	if counts.Outdated == 0 || len(result.invalid) > 0 {
		return out
	}
	left := fmt.Sprintf("%d of %d Pods run another image than the declared one", counts.Outdated, counts.Matched)
	switch {
	case set.Spec.Paused:
		add(v1alpha1.ConditionUpdating, metav1.ConditionFalse, v1alpha1.ReasonPaused, left+"; spec.paused holds the update back")
	case result.failure != nil:
		add(v1alpha1.ConditionUpdating, metav1.ConditionFalse, v1alpha1.ReasonUpdateFailed, left+": "+result.failure.Error())
	case counts.Waiting != nil:
		add(v1alpha1.ConditionUpdating, metav1.ConditionTrue, v1alpha1.ReasonWaitingForPod,
			fmt.Sprintf("%s; waiting for Pod %s to be ready, for one Pod at a time may be away", left, counts.Waiting))
	default:
		add(v1alpha1.ConditionUpdating, metav1.ConditionTrue, v1alpha1.ReasonUpdateInProgress, left+"; they are updated one at a time")
	}
	return out
}

// maxMessage keeps a condition readable, and short enough for the note of an Event, which has at most 1024 bytes.
const maxMessage = 1000

func truncate(message string) string {
	if runes := []rune(message); len(runes) > maxMessage {
		return string(runes[:maxMessage-1]) + "…"
	}
	return message
}
