package nginxoperator

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// transition is a change of the conditions that users are told of by an Event and a line of log.
type transition struct {
	eventType, reason, message string
}

// reasonRecovered is the reason of the Event that ends a Degraded=True.
const reasonRecovered = "Recovered"

// transitions returns what changed between two statuses that is worth an Event. The same status twice gives none, so
// Events come with changes and not with reconciles.
func transitions(old, updated []metav1.Condition) []transition {
	var out []transition
	changed := func(conditionType string) (was, is metav1.Condition, differs bool) {
		if found := meta.FindStatusCondition(old, conditionType); found != nil {
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
			out = append(out, transition{corev1.EventTypeWarning, is.Reason, is.Message})
		case was.Status == metav1.ConditionTrue:
			out = append(out, transition{corev1.EventTypeNormal, reasonRecovered, "no longer degraded: " + was.Reason})
		}
	}
	was, is, _ := changed(v1alpha2.ConditionProgressing)
	if is.Status == metav1.ConditionTrue && was.Status != metav1.ConditionTrue {
		eventType := corev1.EventTypeNormal
		if is.Reason == v1alpha2.ReasonReplicasUnavailable || is.Reason == v1alpha2.ReasonAPIError {
			eventType = corev1.EventTypeWarning
		}
		// That a new object is being brought up is no news; that it is ready, or why it is not, is.
		if was.Status != "" || eventType == corev1.EventTypeWarning {
			out = append(out, transition{eventType, is.Reason, is.Message})
		}
	}
	if was, is, differs := changed(v1alpha2.ConditionCertificatesValid); differs && is.Status == metav1.ConditionFalse {
		out = append(out, transition{corev1.EventTypeWarning, is.Reason, is.Message})
	} else if differs && was.Status == metav1.ConditionFalse && is.Status == metav1.ConditionTrue {
		out = append(out, transition{corev1.EventTypeNormal, is.Reason, is.Message})
	}
	if _, is, differs := changed(v1alpha2.ConditionReady); differs && is.Status == metav1.ConditionTrue {
		out = append(out, transition{corev1.EventTypeNormal, is.Reason, is.Message})
	}
	return out
}
