package nginxoperator

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/metadata"
)

// statusSlot is the time that passes between two status writes that only count on while a rollout runs.
const statusSlot = 5 * time.Second

// computeStatus returns the status for what was observed. The failure is that of this pass's writes, nil where they
// succeeded. Only the times of transitions are taken over from the status that the object has.
func computeStatus(object *v1alpha1.NginxOperator, in inputs, state observed, applying *failure) v1alpha1.NginxOperatorStatus {
	status := v1alpha1.NginxOperatorStatus{
		ObservedGeneration: object.Generation,
		Selector:           labels.SelectorFromSet(metadata.Selector(object.Name)).String(),
		Image:              in.image,
		URL:                serviceURL(object),
	}
	if state.deployment != nil {
		status.Replicas = state.deployment.Status.Replicas
		status.ReadyReplicas = state.deployment.Status.ReadyReplicas
	}
	for _, condition := range object.Status.Conditions {
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	for _, condition := range conditions(state, applying) {
		condition.ObservedGeneration = object.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// conditions returns Ready, Progressing and Degraded, as a function of what is there now and nothing else.
func conditions(state observed, applying *failure) []metav1.Condition {
	if applying != nil && applying.reason == v1alpha1.ReasonRolloutInProgress {
		return []metav1.Condition{
			condition(v1alpha1.ConditionReady, metav1.ConditionFalse, applying.reason, applying.message),
			condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, applying.reason, applying.message),
			condition(v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected, ""),
		}
	}
	if applying != nil {
		return []metav1.Condition{
			condition(v1alpha1.ConditionReady, metav1.ConditionFalse, applying.reason, applying.message),
			condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, applying.reason, "stopped by a failure, see Degraded"),
			condition(v1alpha1.ConditionDegraded, metav1.ConditionTrue, applying.reason, applying.message),
		}
	}
	progress := rolloutOf(state.deployment)
	if progress.complete {
		reason := v1alpha1.ReasonAllReplicasReady
		if progress.desired == 0 {
			reason = v1alpha1.ReasonScaledToZero
		}
		return []metav1.Condition{
			condition(v1alpha1.ConditionReady, metav1.ConditionTrue, reason, progress.message),
			condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonRolloutComplete, progress.message),
			condition(v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected, ""),
		}
	}
	progressing := condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, progress.reason, progress.message)
	failing := operandFailure(state)
	if failing == nil {
		return []metav1.Condition{
			condition(v1alpha1.ConditionReady, metav1.ConditionFalse, progress.reason, progress.message),
			progressing,
			condition(v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected, ""),
		}
	}
	if progress.stalled {
		progressing = condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonProgressDeadlineExceeded, progress.message)
	}
	return []metav1.Condition{
		condition(v1alpha1.ConditionReady, metav1.ConditionFalse, failing.reason, progress.message+": "+failing.message),
		progressing,
		condition(v1alpha1.ConditionDegraded, metav1.ConditionTrue, failing.reason, failing.message),
	}
}

// rollout is how far a Deployment is.
type rollout struct {
	desired int32
	// complete: all replicas are ready, all are of the newest revision, and no older one is left.
	complete bool
	// stalled: the Deployment's progress deadline has passed.
	stalled         bool
	reason, message string
}

func rolloutOf(deployment *appsv1.Deployment) rollout {
	if deployment == nil {
		return rollout{reason: v1alpha1.ReasonRolloutInProgress, message: "the Deployment does not exist yet"}
	}
	status, desired := deployment.Status, ptr.Deref(deployment.Spec.Replicas, 1)
	if status.ObservedGeneration < deployment.Generation {
		return rollout{desired: desired, reason: v1alpha1.ReasonRolloutInProgress, message: "the Deployment was changed, its rollout begins"}
	}
	out := rollout{
		desired: desired,
		reason:  v1alpha1.ReasonRolloutInProgress,
		message: fmt.Sprintf("%d of %d replicas are ready, %d are up to date", status.ReadyReplicas, desired, status.UpdatedReplicas),
	}
	rolledOut := status.UpdatedReplicas == desired && status.Replicas == desired
	if progressing := deploymentCondition(deployment, appsv1.DeploymentProgressing); progressing != nil {
		out.stalled = progressing.Status == corev1.ConditionFalse
		if progressing.Reason == "NewReplicaSetAvailable" && rolledOut {
			out.reason = v1alpha1.ReasonReplicasUnavailable
		}
	}
	out.complete = rolledOut && status.AvailableReplicas >= desired
	if out.complete {
		out.message = fmt.Sprintf("%d of %d replicas are ready", status.ReadyReplicas, desired)
	}
	return out
}

func condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: truncate(message)}
}

// maxMessage keeps a condition readable; the schema of conditions allows 32768 characters.
const maxMessage = 1024

func truncate(message string) string {
	if runes := []rune(message); len(runes) > maxMessage {
		return string(runes[:maxMessage-1]) + "…"
	}
	return message
}

// writeDelay tells how long a status may wait before it is written: not at all when it says something new, and to the
// end of the current slot when, while a rollout runs, only counts moved. A rollout of many Pods thus costs a few
// writes and not one for each Pod. Negative: there is nothing to write, because nothing differs, or nothing but counts
// while no Pod is ready yet: those go with the next write, be it about readiness or a failure.
func writeDelay(old, updated *v1alpha1.NginxOperatorStatus, now time.Time) time.Duration {
	if equality.Semantic.DeepEqual(old, updated) {
		return -1
	}
	progressing := meta.FindStatusCondition(updated.Conditions, v1alpha1.ConditionProgressing)
	if progressing == nil || progressing.Status != metav1.ConditionTrue || !equality.Semantic.DeepEqual(withoutCounts(old), withoutCounts(updated)) {
		return 0
	}
	if old.ReadyReplicas == 0 && updated.ReadyReplicas == 0 {
		return -1
	}
	elapsed := now.Sub(progressing.LastTransitionTime.Time)
	if sinceSlot := elapsed % statusSlot; elapsed < statusSlot || sinceSlot > time.Second {
		return statusSlot - sinceSlot
	}
	return 0
}

// withoutCounts returns a status without what moves with each Pod: the counts, the messages, and the distinction of a
// rollout that runs from one that waits for its last replicas.
func withoutCounts(status *v1alpha1.NginxOperatorStatus) *v1alpha1.NginxOperatorStatus {
	out := status.DeepCopy()
	out.Replicas, out.ReadyReplicas = 0, 0
	for i := range out.Conditions {
		out.Conditions[i].Message = ""
		if out.Conditions[i].Reason == v1alpha1.ReasonReplicasUnavailable {
			out.Conditions[i].Reason = v1alpha1.ReasonRolloutInProgress
		}
	}
	return out
}
