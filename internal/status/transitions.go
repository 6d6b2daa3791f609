package status

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// Transition is a change of conditions that is reported by an Event and in the log.
type Transition struct {
	// EventType is Normal or Warning.
	EventType, Reason, Message string
}

// reasonRecovered is the reason of the Event for the end of Degraded=True.
const reasonRecovered = "Recovered"

// Transitions returns the changes of the conditions since an earlier status that deserve an Event.
// It returns none for equal conditions, so a reconcile without a change sends no Events. A new
// object that becomes Ready deserves none: its status reports that.
func Transitions(old *v1alpha2.NginxOperatorStatus, updated []metav1.Condition) []Transition {
	var out []Transition
	for _, conditionType := range []string{
		v1alpha2.ConditionDegraded, v1alpha2.ConditionProgressing, v1alpha2.ConditionCertificatesValid,
		v1alpha2.ConditionOutdated, v1alpha2.ConditionReady,
	} {
		was := ptr.Deref(meta.FindStatusCondition(old.Conditions, conditionType), metav1.Condition{})
		is := ptr.Deref(meta.FindStatusCondition(updated, conditionType), metav1.Condition{})
		if was.Status == is.Status && was.Reason == is.Reason {
			continue
		}

		if eventType := eventTypeOf(conditionType, was, is, old.LastGoodRevision != nil); eventType != "" {
			out = append(out, Transition{eventType, is.Reason, is.Message})
		} else if conditionType == v1alpha2.ConditionDegraded && was.Status == metav1.ConditionTrue {
			out = append(out, Transition{corev1.EventTypeNormal, reasonRecovered, "no longer degraded: " + was.Reason})
		}
	}

	return out
}

// eventTypeOf returns the type of the Event for a changed condition, or "" for none.
func eventTypeOf(conditionType string, was, is metav1.Condition, hasServed bool) string {
	isTrue, wasTrue := is.Status == metav1.ConditionTrue, was.Status == metav1.ConditionTrue
	isForged := is.Reason == v1alpha2.ReasonForgedContent && was.Reason != is.Reason
	switch conditionType {
	case v1alpha2.ConditionCertificatesValid:
		if is.Status == metav1.ConditionFalse {
			return corev1.EventTypeWarning
		}
		if isTrue && was.Status == metav1.ConditionFalse {
			return corev1.EventTypeNormal
		}
	case v1alpha2.ConditionReady:
		if isTrue && hasServed {
			return corev1.EventTypeNormal
		}
	case v1alpha2.ConditionProgressing:
		switch {
		case !isTrue, wasTrue && !isForged:
		case isForged, is.Reason == v1alpha2.ReasonReplicasUnavailable, is.Reason == v1alpha2.ReasonAPIError:
			return corev1.EventTypeWarning
		case was.Status != "": // the start of a new object is expected
			return corev1.EventTypeNormal
		}
	default:
		if isTrue {
			return corev1.EventTypeWarning
		}
	}

	return ""
}

// statusSlot is the interval of status writes that only change counts during a rollout.
const statusSlot = 5 * time.Second

// WriteDelay returns the delay of a status write. It is 0 if anything but counts changed. If only
// counts changed during a rollout or while the spec cannot be used, it is the time until the end of
// the current slot, so a rollout of many Pods costs only a few writes. It is negative if nothing
// changed, or only counts while no Pod is ready.
func WriteDelay(old, updated *v1alpha2.NginxOperatorStatus, now time.Time) time.Duration {
	if equality.Semantic.DeepEqual(old, updated) {
		return -1
	}

	progressing := meta.FindStatusCondition(updated.Conditions, v1alpha2.ConditionProgressing)
	rolling := progressing != nil && progressing.Status == metav1.ConditionTrue
	held := !rolling && len(updated.BlockedBy) > 0
	if progressing == nil || !rolling && !held ||
		!equality.Semantic.DeepEqual(withoutCounts(old), withoutCounts(updated)) {
		return 0
	}
	if old.ReadyReplicas == 0 && updated.ReadyReplicas == 0 && !held {
		return -1
	}

	elapsed := now.Sub(progressing.LastTransitionTime.Time)
	if elapsed < 0 { // the clock of the process that wrote the status was ahead
		return 0
	}
	if sinceSlot := elapsed % statusSlot; elapsed < statusSlot || sinceSlot > time.Second {
		return statusSlot - sinceSlot
	}

	return 0
}

// withoutCounts returns a status without the parts that change with each Pod: the counts, the
// messages, and the difference between a running rollout and one that waits for its last Pods.
func withoutCounts(status *v1alpha2.NginxOperatorStatus) *v1alpha2.NginxOperatorStatus {
	out := status.DeepCopy()
	out.Replicas, out.ReadyReplicas, out.UpdatedReplicas = 0, 0, 0
	for i := range out.Conditions {
		out.Conditions[i].Message = ""
		if out.Conditions[i].Reason == v1alpha2.ReasonReplicasUnavailable {
			out.Conditions[i].Reason = v1alpha2.ReasonRolloutInProgress
		}
	}

	return out
}
