package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/rollout"
)

// conditions returns Ready, Progressing, and Degraded. Earlier conditions do not affect them.
// Failures of children that no Pod depends on do not affect Ready.
func conditions(object *v1alpha2.NginxOperator, state live.Observed, result Outcome, beside []failure.Failure) []metav1.Condition {
	switch failed := result.Failure; {
	case failed != nil && result.Replaced:
		return []metav1.Condition{
			condition(v1alpha2.ConditionReady, metav1.ConditionFalse, failed.Reason, failed.Message),
			condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, failed.Reason, failed.Message),
			condition(v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected, ""),
		}
	case failed != nil && failed.Reason == v1alpha2.ReasonRolloutInProgress:
		return []metav1.Condition{
			condition(v1alpha2.ConditionReady, metav1.ConditionFalse, failed.Reason, failed.Message),
			condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, failed.Reason, failed.Message),
			condition(v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected, ""),
		}
	case failed != nil && failed.Reason == v1alpha2.ReasonAPIError && !result.Persistent:
		return []metav1.Condition{
			condition(v1alpha2.ConditionReady, metav1.ConditionFalse, failed.Reason, failed.Message),
			condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, failed.Reason, "a request failed, and is retried"),
			condition(v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected, ""),
		}
	case failed != nil:
		return Stopped(failed.Reason, failed.Message, "stopped by a failure, see Degraded")
	case result.State == rollout.StateBlocked:
		return Stopped(result.Blockers[0].Reason, blockedMessage(object, state, result.Blockers), "changes are blocked, see Degraded")
	case result.IsRolledBack() || result.Failed != nil:
		return rolledBack(state, result)
	}
	out := withIndependentFailures(whileReplacing(object, operandConditions(state)), beside, result)
	if result.Attempt != nil && !health.ProgressOf(state.Deployment).Complete {
		message := rollout.AttemptMessage(result.Attempt)
		out[2] = condition(v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack, message)
	}
	if result.WaitsFor != "" && out[1].Status == metav1.ConditionFalse && out[0].Status == metav1.ConditionTrue {
		message := rollout.WaitingMessage(result.WaitsFor)
		out[1] = condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, v1alpha2.ReasonWaitingForFleet, message)
	}
	if object.Spec.Paused {
		message := "spec.paused is set, and no change waits"
		if len(result.Waiting) > 0 {
			message = pausedMessage(result)
			out[0] = condition(v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonPaused, message)
		}
		out[1] = condition(v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonPaused, message)
	}
	return out
}

// operandConditions returns Ready, Progressing, and Degraded of an object whose spec is applied.
func operandConditions(state live.Observed) []metav1.Condition {
	progress := health.ProgressOf(state.Deployment)
	if progress.Complete {
		reason := v1alpha2.ReasonAllReplicasReady
		if progress.Desired == 0 {
			reason = v1alpha2.ReasonScaledToZero
		}
		return []metav1.Condition{
			condition(v1alpha2.ConditionReady, metav1.ConditionTrue, reason, progress.Message),
			condition(v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonRolloutComplete, progress.Message),
			condition(v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected, ""),
		}
	}
	progressing := condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, progress.Reason, progress.Message)
	failing := health.Worst(state.Deployment, state.Pods)
	if failing == nil {
		return []metav1.Condition{
			condition(v1alpha2.ConditionReady, metav1.ConditionFalse, progress.Reason, progress.Message),
			progressing,
			condition(v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected, ""),
		}
	}
	if progress.Stalled {
		progressing = condition(v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonProgressDeadlineExceeded, progress.Message)
	}
	return []metav1.Condition{
		condition(v1alpha2.ConditionReady, metav1.ConditionFalse, failing.Reason, progress.Message+": "+failing.Message),
		progressing,
		condition(v1alpha2.ConditionDegraded, metav1.ConditionTrue, failing.Reason, failing.Message),
	}
}

// blockedMessage returns the message of Degraded for a blocked object.
func blockedMessage(object *v1alpha2.NginxOperator, state live.Observed, blockers []failure.Failure) string {
	message := blockers[0].Message
	if more := len(blockers) - 1; more > 0 {
		message += fmt.Sprintf("; and %d more in status.blockedBy", more)
	}
	switch {
	case state.Deployment != nil:
		return message + "; running Pods are unchanged"
	case object.Status.LastGoodRevision != nil:
		return message + "; the Deployment does not exist, and is created again after that"
	}
	return message + "; nothing is created before that"
}
