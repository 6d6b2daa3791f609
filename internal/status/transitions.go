package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// Transition is a change of conditions that is reported by an Event and in the log.
type Transition struct {
	// EventType is Normal or Warning.
	EventType string
	// Reason and Message are those of the Event.
	Reason, Message string
}

// reasonRecovered is the reason of the Event for the end of Degraded=True.
const reasonRecovered = "Recovered"

// Transitions returns the changes of the conditions since an earlier status that deserve an Event.
// It returns none for equal conditions, so a reconcile without a change sends no Events. A new
// object that becomes Ready deserves none: its status reports that.
func Transitions(old *v1alpha2.NginxOperatorStatus, updated []metav1.Condition) []Transition {
	var out []Transition
	changed := func(conditionType string) (was, is metav1.Condition, differs bool) {
		if found := meta.FindStatusCondition(old.Conditions, conditionType); found != nil {
			was = *found
		}
		if found := meta.FindStatusCondition(updated, conditionType); found != nil {
			is = *found
		}
		return was, is, was.Status != is.Status || was.Reason != is.Reason
	}
	if was, is, differs := changed(v1alpha2.ConditionDegraded); differs {
		switch {
		case is.Status == metav1.ConditionTrue:
			out = append(out, Transition{corev1.EventTypeWarning, is.Reason, is.Message})
		case was.Status == metav1.ConditionTrue:
			out = append(out, Transition{corev1.EventTypeNormal, reasonRecovered, "no longer degraded: " + was.Reason})
		}
	}
	was, is, _ := changed(v1alpha2.ConditionProgressing)
	out = append(out, ofProgressing(was, is)...)
	if was, is, differs := changed(v1alpha2.ConditionCertificatesValid); differs && is.Status == metav1.ConditionFalse {
		out = append(out, Transition{corev1.EventTypeWarning, is.Reason, is.Message})
	} else if differs && was.Status == metav1.ConditionFalse && is.Status == metav1.ConditionTrue {
		out = append(out, Transition{corev1.EventTypeNormal, is.Reason, is.Message})
	}
	if _, is, differs := changed(v1alpha2.ConditionOutdated); differs && is.Status == metav1.ConditionTrue {
		out = append(out, Transition{corev1.EventTypeWarning, is.Reason, is.Message})
	}
	hasServed := old.LastGoodRevision != nil
	if _, is, differs := changed(v1alpha2.ConditionReady); differs && is.Status == metav1.ConditionTrue && hasServed {
		out = append(out, Transition{corev1.EventTypeNormal, is.Reason, is.Message})
	}
	return out
}

// ofProgressing returns the transitions of the condition Progressing.
func ofProgressing(was, is metav1.Condition) []Transition {
	isForged := is.Reason == v1alpha2.ReasonForgedContent && was.Reason != is.Reason
	if is.Status != metav1.ConditionTrue || was.Status == metav1.ConditionTrue && !isForged {
		return nil
	}
	eventType := corev1.EventTypeNormal
	if isForged || is.Reason == v1alpha2.ReasonReplicasUnavailable || is.Reason == v1alpha2.ReasonAPIError {
		eventType = corev1.EventTypeWarning
	}
	// The start of a new object is expected. Its readiness, or the reason against it, is reported.
	if was.Status == "" && eventType == corev1.EventTypeNormal {
		return nil
	}
	return []Transition{{eventType, is.Reason, is.Message}}
}
