package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/live"
)

// withIndependentFailures adds the failures of children that no Pod depends on. They do not affect
// Ready. A failed request is retried before it affects Degraded.
func withIndependentFailures(out []metav1.Condition, beside []failure.Failure, result Outcome) []metav1.Condition {
	for i := range beside {
		switch found := &beside[i]; {
		case isTransient(found, result):
			if out[1].Status == metav1.ConditionFalse {
				out[1] = condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, found.Reason, "a request failed, and is retried")
			}
		case out[2].Status == metav1.ConditionFalse:
			out[2] = condition(v1alpha2.ConditionDegraded, metav1.ConditionTrue, found.Reason, found.Message)
		}
		if beside[i].Reason == v1alpha2.ReasonAPIError && out[1].Status == metav1.ConditionFalse {
			out[1] = condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, beside[i].Reason, "requests fail, and are retried")
		}
	}
	return out
}

// rolledBack returns the conditions of an object whose change was rolled back.
func rolledBack(state live.Observed, result Outcome) []metav1.Condition {
	progress := health.ProgressOf(state.Deployment)
	rolling, message := result.Failed != nil || !progress.Complete, progress.Message
	if failing := health.Worst(state.Deployment, state.Pods); rolling && failing != nil && result.Failed == nil {
		message += ": " + failing.Message
	}
	reasons := result.reasons()
	out := Stopped(v1alpha2.ReasonRolledBack, reasons[len(reasons)-1].Message+rolledBackEnd, message)
	if rolling {
		out[1].Status = metav1.ConditionTrue
	}
	return out
}

// rolledBackEnd names the running revision and the remedy.
const rolledBackEnd = ". The last good revision is running. Change the spec or a referenced object to retry"

// whileReplacing retains the reason for a rollout that replaces Pods after a forgery was found.
func whileReplacing(object *v1alpha2.NginxOperator, out []metav1.Condition) []metav1.Condition {
	was := meta.FindStatusCondition(object.Status.Conditions, v1alpha2.ConditionReady)
	if was == nil || was.Reason != v1alpha2.ReasonForgedContent || out[0].Reason != v1alpha2.ReasonRolloutInProgress {
		return out
	}
	for i := range out[:2] {
		out[i].Reason = v1alpha2.ReasonForgedContent
		out[i].Message = "replacing all Pods, as they may have mounted a forged ConfigMap: " + out[i].Message
	}
	return out
}
