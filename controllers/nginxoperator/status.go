package nginxoperator

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/metadata"
)

// statusSlot is the time that passes between two status writes that only count on while a rollout runs.
const statusSlot = 5 * time.Second

// computeStatus returns the status for what was observed and what the pass came to. From the status that the object has
// it takes over the times of transitions; and, while changes are held back, what it says of the operands' declaration,
// which is that of the last one that was applied.
func computeStatus(object *v1alpha2.NginxOperator, state observed, result outcome) v1alpha2.NginxOperatorStatus {
	status := v1alpha2.NginxOperatorStatus{
		ObservedGeneration: object.Generation,
		Selector:           labels.SelectorFromSet(metadata.Selector(object.Name)).String(),
		Image:              result.image,
		URL:                serviceURL(object),
		RelatedObjects:     relatedObjects(result.children),
		BlockedBy:          blockedBy(result),
	}
	if result.held() || result.children == nil {
		status.Image, status.URL, status.RelatedObjects = object.Status.Image, object.Status.URL, object.Status.RelatedObjects
	}
	if state.deployment != nil {
		status.Replicas = state.deployment.Status.Replicas
		status.ReadyReplicas = state.deployment.Status.ReadyReplicas
		status.UpdatedReplicas = state.deployment.Status.UpdatedReplicas
	}
	for _, condition := range object.Status.Conditions {
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	for _, condition := range conditions(object, state, result) {
		condition.ObservedGeneration = object.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

func relatedObjects(children []client.Object) []v1alpha2.RelatedObject {
	var out []v1alpha2.RelatedObject
	for _, child := range children {
		apiVersion, kind := child.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		out = append(out, v1alpha2.RelatedObject{APIVersion: apiVersion, Kind: kind, Name: child.GetName()})
	}
	return out
}

// maxBlockers is what the schema allows; one place is left for Paused.
const maxBlockers = 63

func blockedBy(result outcome) []v1alpha2.Blocker {
	var out []v1alpha2.Blocker
	for _, blocker := range result.blockers[:min(len(result.blockers), maxBlockers)] {
		out = append(out, v1alpha2.Blocker{Reason: blocker.reason, Message: truncate(blocker.message)})
	}
	if len(result.waiting) > 0 {
		out = append(out, v1alpha2.Blocker{Reason: v1alpha2.ReasonPaused, Message: truncate(pausedMessage(result))})
	}
	return out
}

func pausedMessage(result outcome) string {
	return "spec.paused holds back: " + strings.Join(result.waiting, ", ")
}

// conditions returns Ready, Progressing and Degraded, as a function of what is there now and nothing else.
func conditions(object *v1alpha2.NginxOperator, state observed, result outcome) []metav1.Condition {
	switch failed := result.failure; {
	case failed != nil && failed.reason == v1alpha2.ReasonRolloutInProgress:
		return []metav1.Condition{
			condition(v1alpha2.ConditionReady, metav1.ConditionFalse, failed.reason, failed.message),
			condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, failed.reason, failed.message),
			condition(v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected, ""),
		}
	case failed != nil:
		return stopped(failed.reason, failed.message, "stopped by a failure, see Degraded")
	case len(result.blockers) > 0:
		return stopped(result.blockers[0].reason, blockedMessage(state, result.blockers), "changes are held back, see Degraded")
	}
	out := operandConditions(state)
	if object.Spec.Paused {
		message := "spec.paused is set, and no change waits"
		if len(result.waiting) > 0 {
			message = pausedMessage(result)
			out[0] = condition(v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonPaused, message)
		}
		out[1] = condition(v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonPaused, message)
	}
	return out
}

// stopped returns the conditions of an object whose operands cannot be brought to what it declares.
func stopped(reason, message, progress string) []metav1.Condition {
	return []metav1.Condition{
		condition(v1alpha2.ConditionReady, metav1.ConditionFalse, reason, message),
		condition(v1alpha2.ConditionProgressing, metav1.ConditionFalse, reason, progress),
		condition(v1alpha2.ConditionDegraded, metav1.ConditionTrue, reason, message),
	}
}

func blockedMessage(state observed, blockers []failure) string {
	message := blockers[0].message
	if more := len(blockers) - 1; more > 0 {
		message += fmt.Sprintf("; and %d more in status.blockedBy", more)
	}
	if state.deployment == nil {
		return message + "; nothing is created before that"
	}
	return message + "; what runs goes on to run as it is"
}

// operandConditions returns Ready, Progressing and Degraded of operands that are declared as the object asks.
func operandConditions(state observed) []metav1.Condition {
	progress := rolloutOf(state.deployment)
	if progress.complete {
		reason := v1alpha2.ReasonAllReplicasReady
		if progress.desired == 0 {
			reason = v1alpha2.ReasonScaledToZero
		}
		return []metav1.Condition{
			condition(v1alpha2.ConditionReady, metav1.ConditionTrue, reason, progress.message),
			condition(v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonRolloutComplete, progress.message),
			condition(v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected, ""),
		}
	}
	progressing := condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, progress.reason, progress.message)
	failing := operandFailure(state)
	if failing == nil {
		return []metav1.Condition{
			condition(v1alpha2.ConditionReady, metav1.ConditionFalse, progress.reason, progress.message),
			progressing,
			condition(v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected, ""),
		}
	}
	if progress.stalled {
		progressing = condition(v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonProgressDeadlineExceeded, progress.message)
	}
	return []metav1.Condition{
		condition(v1alpha2.ConditionReady, metav1.ConditionFalse, failing.reason, progress.message+": "+failing.message),
		progressing,
		condition(v1alpha2.ConditionDegraded, metav1.ConditionTrue, failing.reason, failing.message),
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
		return rollout{reason: v1alpha2.ReasonRolloutInProgress, message: "the Deployment does not exist yet"}
	}
	status, desired := deployment.Status, ptr.Deref(deployment.Spec.Replicas, 1)
	if status.ObservedGeneration < deployment.Generation {
		return rollout{desired: desired, reason: v1alpha2.ReasonRolloutInProgress, message: "the Deployment was changed, its rollout begins"}
	}
	out := rollout{
		desired: desired,
		reason:  v1alpha2.ReasonRolloutInProgress,
		message: fmt.Sprintf("%d of %d replicas are ready, %d are up to date", status.ReadyReplicas, desired, status.UpdatedReplicas),
	}
	rolledOut := status.UpdatedReplicas == desired && status.Replicas == desired
	if progressing := deploymentCondition(deployment, appsv1.DeploymentProgressing); progressing != nil {
		out.stalled = progressing.Status == corev1.ConditionFalse
		if progressing.Reason == "NewReplicaSetAvailable" && rolledOut {
			out.reason = v1alpha2.ReasonReplicasUnavailable
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
// end of the current slot when, while a rollout runs or changes are held back, only counts moved. A rollout of many Pods thus costs a few
// writes and not one for each Pod. Negative: there is nothing to write, because nothing differs, or nothing but counts
// while no Pod is ready yet: those go with the next write, be it about readiness or a failure.
func writeDelay(old, updated *v1alpha2.NginxOperatorStatus, now time.Time) time.Duration {
	if equality.Semantic.DeepEqual(old, updated) {
		return -1
	}
	progressing := meta.FindStatusCondition(updated.Conditions, v1alpha2.ConditionProgressing)
	held := len(updated.BlockedBy) > 0
	if progressing == nil || progressing.Status != metav1.ConditionTrue && !held || !equality.Semantic.DeepEqual(withoutCounts(old), withoutCounts(updated)) {
		return 0
	}
	if old.ReadyReplicas == 0 && updated.ReadyReplicas == 0 && !held {
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
