package status

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	case failed != nil && isTransient(failed, result):
		progress := failed.Message
		if failed.Reason == v1alpha2.ReasonAPIError {
			progress = requestRetried
		}
		return unready(failed.Reason, failed.Message, progress)
	case failed != nil:
		return Stopped(failed.Reason, failed.Message, "stopped by a failure, see Degraded")
	case result.State == rollout.StateUnusable:
		return Stopped(result.Blockers[0].Reason, blockedMessage(object, state, result.Blockers), "the spec cannot be used, see Degraded")
	case result.IsRolledBack() || result.Failed != nil:
		return rolledBack(state, result)
	}

	out := withIndependentFailures(whileReplacing(object, operandConditions(state)), beside, result)
	if result.Attempt != nil && !health.ProgressOf(state.Deployment).Complete {
		message := rollout.AttemptMessage(result.Attempt)
		out[2] = condition(v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack, message)
	}

	if result.WaitsFor != "" && out[1].Status == metav1.ConditionFalse && out[0].Status == metav1.ConditionTrue {
		message := "waiting for a rollout slot: the operator upgrade changes " + result.WaitsFor +
			"; the running Pods serve the spec"
		out[1] = condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, v1alpha2.ReasonWaitingForFleet, message)
	}

	if object.Spec.Paused {
		message := "spec.paused is set; no change waits"
		if len(result.Waiting) > 0 {
			message = pausedMessage(result)
			out[0] = condition(v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonPaused, message)
		}
		out[1] = condition(v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonPaused, message)
	}

	return out
}

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

	failing := health.Worst(state.Deployment, state.Pods)
	if failing == nil {
		return unready(progress.Reason, progress.Message, progress.Message)
	}

	progressing := condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, progress.Reason, progress.Message)
	if progress.Stalled {
		progressing.Status, progressing.Reason = metav1.ConditionFalse, v1alpha2.ReasonProgressDeadlineExceeded
	}

	return []metav1.Condition{
		condition(v1alpha2.ConditionReady, metav1.ConditionFalse, failing.Reason, progress.Message+": "+failing.Message),
		progressing,
		condition(v1alpha2.ConditionDegraded, metav1.ConditionTrue, failing.Reason, failing.Message),
	}
}

// withIndependentFailures retries failed requests before they affect Degraded.
func withIndependentFailures(out []metav1.Condition, beside []failure.Failure, result Outcome) []metav1.Condition {
	for i := range beside {
		found := &beside[i]
		passes := isTransient(found, result)
		if !passes && out[2].Status == metav1.ConditionFalse {
			out[2] = condition(v1alpha2.ConditionDegraded, metav1.ConditionTrue, found.Reason, found.Message)
		}
		if (passes || found.Reason == v1alpha2.ReasonAPIError) && out[1].Status == metav1.ConditionFalse {
			out[1] = condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, found.Reason, requestRetried)
		}
	}
	return out
}

func rolledBack(state live.Observed, result Outcome) []metav1.Condition {
	progress := health.ProgressOf(state.Deployment)
	rolling, message := result.Failed != nil || !progress.Complete, progress.Message
	if failing := health.Worst(state.Deployment, state.Pods); rolling && failing != nil && result.Failed == nil {
		message += ": " + failing.Message
	}

	reasons := result.reasons()
	end := retryRemedy
	if result.Applied != nil {
		end = lastGoodRuns + retryRemedy
	}

	out := Stopped(v1alpha2.ReasonRolledBack, reasons[len(reasons)-1].Message+end, message)
	if rolling {
		out[1].Status = metav1.ConditionTrue
	}

	return out
}

// lastGoodRuns follows a rollback, unless there is nothing to roll back to.
const (
	lastGoodRuns = ". The last good revision is running"
	retryRemedy  = ". Change the spec or a referenced object to retry"
)

// whileReplacing retains the reason for a rollout that replaces Pods after a forgery was found.
func whileReplacing(object *v1alpha2.NginxOperator, out []metav1.Condition) []metav1.Condition {
	was := meta.FindStatusCondition(object.Status.Conditions, v1alpha2.ConditionReady)
	if was == nil || was.Reason != v1alpha2.ReasonForgedContent || out[0].Reason != v1alpha2.ReasonRolloutInProgress {
		return out
	}
	for i := range out[:2] {
		out[i].Reason = v1alpha2.ReasonForgedContent
		out[i].Message = "replacing all Pods, because they may have mounted a forged ConfigMap: " + out[i].Message
	}

	return out
}

func blockedMessage(object *v1alpha2.NginxOperator, state live.Observed, blockers []failure.Failure) string {
	message := blockers[0].Message
	if more := len(blockers) - 1; more > 0 {
		message += fmt.Sprintf("; and %d more in status.blockedBy", more)
	}

	switch {
	case state.Deployment != nil:
		return message + "; running Pods are unchanged"
	case object.Status.LastGoodRevision != nil:
		return message + "; the Deployment does not exist and is created again once this is corrected"
	}

	return message + "; nothing is created until this is corrected"
}

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

func unready(reason, message, progress string) []metav1.Condition {
	return []metav1.Condition{
		condition(v1alpha2.ConditionReady, metav1.ConditionFalse, reason, message),
		condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, reason, progress),
		condition(v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected, ""),
	}
}

const requestRetried = "requests to the API server fail; the operator retries"

// outdated returns the condition for stored values that this release refuses, or nil.
func outdated(stored field.ErrorList) *metav1.Condition {
	if len(stored) == 0 {
		return nil
	}

	var fields []string
	for _, problem := range stored {
		fields = append(fields, problem.Error())
	}

	found := condition(v1alpha2.ConditionOutdated, metav1.ConditionTrue, v1alpha2.ReasonValueRefused,
		"an older release accepted values that this release refuses in a new write; they stay in effect until you change them: "+
			strings.Join(fields, "; "))
	return &found
}
