package status

import (
	corev1 "k8s.io/api/core/v1"
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

// eventTypeOf returns the type of the Event for a changed condition that reports its new reason, or
// "" if there is none.
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
