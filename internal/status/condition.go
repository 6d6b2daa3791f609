package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
)

// condition returns a condition with a message of at most failure.MaxMessage bytes.
func condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: failure.Truncate(message)}
}

// Stopped returns Ready, Progressing, and Degraded of an object whose spec cannot be applied.
func Stopped(reason, message, progress string) []metav1.Condition {
	return []metav1.Condition{
		condition(v1alpha2.ConditionReady, metav1.ConditionFalse, reason, message),
		condition(v1alpha2.ConditionProgressing, metav1.ConditionFalse, reason, progress),
		condition(v1alpha2.ConditionDegraded, metav1.ConditionTrue, reason, message),
	}
}
