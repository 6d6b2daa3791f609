package nginxoperator

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// statusSlot is the time that reconciles between two status writes that only count on while a rollout runs.
const statusSlot = 5 * time.Second

// computeStatus returns the status for what was observed and what the reconcile came to. From the status that the object has
// it takes over the times of transitions; and, while changes are blocked, what it says of the operands' declaration,
// which is that of the last one that was applied. It changes with the time as well: then it also returns how long it holds, 0 for
// ever.
func computeStatus(
	object *v1alpha2.NginxOperator, state observed, result outcome, now time.Time,
) (status v1alpha2.NginxOperatorStatus, again time.Duration) {
	beside := append(missingFailures(result.applied), routeFailures(result.applied, state.route)...)
	status = v1alpha2.NginxOperatorStatus{
		ObservedGeneration: object.Generation,
		Selector:           labels.SelectorFromSet(wellknown.Selector(object.Name)).String(),
		RelatedObjects:     related(object, state, result),
		BlockedBy:          blockedBy(state, result, beside),
		LastGoodRevision:   lastGood(object, state, result),
		FailedRevisions:    failedRevisions(object, result),
		Certificates:       object.Status.Certificates,
		PatchedKinds:       object.Status.PatchedKinds,
	}
	applied := result.applied
	if len(result.waiting) > 0 {
		applied = nil
	}
	if applied != nil && result.children != nil {
		status.PatchedKinds = patchedKinds(applied, result.children)
	}
	if len(state.service) > 0 {
		status.Addresses = addressesOf(state)
		status.URL = object.Status.URL
		if applied != nil {
			if url, found := instanceURL(applied.object, state); found {
				status.URL = url
			}
		}
	}
	if state.deployment != nil {
		status.Image = object.Status.Image
		if applied != nil && (result.failure == nil || status.Image == "") {
			status.Image = applied.in.image
		}
		status.Replicas = state.deployment.Status.Replicas
		status.ReadyReplicas = state.deployment.Status.ReadyReplicas
		status.UpdatedReplicas = state.deployment.Status.UpdatedReplicas
	}
	updated := conditions(object, state, result, beside)
	before := slices.Clone(object.Status.Conditions)
	if result.resolved {
		status.Certificates = reportOf(result.certificates)
		var valid *metav1.Condition
		if valid, again = certificatesValid(result.certificates, now); valid != nil {
			updated = append(updated, *valid)
		} else {
			meta.RemoveStatusCondition(&before, v1alpha2.ConditionCertificatesValid)
		}
	}
	for _, condition := range before {
		now := meta.FindStatusCondition(updated, condition.Type)
		if now != nil && now.Reason == v1alpha2.ReasonAPIError && condition.Reason != now.Reason {
			condition.LastTransitionTime = metav1.Now() // from here on it counts how long it lasts
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	for _, condition := range updated {
		condition.ObservedGeneration = object.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status, again
}

// serves reports whether a Service has a port of that number.
func serves(ports []corev1.ServicePort, number int32) bool {
	return slices.ContainsFunc(ports, func(port corev1.ServicePort) bool { return port.Port == number })
}

// related returns the children that exist of those that were applied: those of the declaration that is applied or, where none is,
// those of before.
func related(object *v1alpha2.NginxOperator, state observed, result outcome) []v1alpha2.RelatedObject {
	applied := relatedObjects(result.children)
	if len(result.waiting) > 0 || result.children == nil {
		applied = object.Status.RelatedObjects
	}
	var out []v1alpha2.RelatedObject
	for _, child := range applied {
		if slices.Contains(state.related, child) {
			out = append(out, child)
		}
	}
	return out
}

func relatedObjects(children []client.Object) []v1alpha2.RelatedObject {
	var out []v1alpha2.RelatedObject
	for _, child := range children {
		apiVersion, kind := child.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		out = append(out, v1alpha2.RelatedObject{APIVersion: apiVersion, Kind: kind, Name: child.GetName()})
	}
	return out
}

func pausedMessage(result outcome) string {
	return "spec.paused blocks: " + strings.Join(result.waiting, ", ")
}

// conditions returns Ready, Progressing and Degraded, as a function of what is there now and nothing else. What fails beside the Pods is no
// reason against Ready, which is about them.
func conditions(object *v1alpha2.NginxOperator, state observed, result outcome, beside []failure) []metav1.Condition {
	switch failed := result.failure; {
	case failed != nil && failed.reason == v1alpha2.ReasonRolloutInProgress:
		return []metav1.Condition{
			condition(v1alpha2.ConditionReady, metav1.ConditionFalse, failed.reason, failed.message),
			condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, failed.reason, failed.message),
			condition(v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected, ""),
		}
	case failed != nil && failed.reason == v1alpha2.ReasonAPIError && !result.lasting:
		return []metav1.Condition{
			condition(v1alpha2.ConditionReady, metav1.ConditionFalse, failed.reason, failed.message),
			condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, failed.reason, "a request failed, and is tried again"),
			condition(v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected, ""),
		}
	case failed != nil:
		return stopped(failed.reason, failed.message, "stopped by a failure, see Degraded")
	case len(result.blockers) > 0 && result.blockers[0].reason == v1alpha2.ReasonRolledBack:
		return takenBack(state, result)
	case len(result.blockers) > 0:
		return stopped(result.blockers[0].reason, blockedMessage(state, result.blockers), "changes are blocked, see Degraded")
	}
	out := operandConditions(state)
	if len(beside) > 0 && out[2].Status == metav1.ConditionFalse {
		out[2] = condition(v1alpha2.ConditionDegraded, metav1.ConditionTrue, beside[0].reason, beside[0].message)
	}
	if result.waitsFor != "" && out[1].Status == metav1.ConditionFalse && out[0].Status == metav1.ConditionTrue {
		out[1] = condition(v1alpha2.ConditionProgressing, metav1.ConditionTrue, v1alpha2.ReasonWaitingForFleet, waitingMessage(result.waitsFor))
	}
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

// apiErrorLasts is how long requests have to fail before the object counts as degraded: servers are restarted.
const apiErrorLasts = 30 * time.Second

// lasts reports whether the conditions say for long enough that requests fail.
func lasts(conditions []metav1.Condition, now time.Time) bool {
	found := meta.FindStatusCondition(conditions, v1alpha2.ConditionProgressing)
	return found != nil && found.Reason == v1alpha2.ReasonAPIError &&
		(found.Status == metav1.ConditionFalse || now.Sub(found.LastTransitionTime.Time) >= apiErrorLasts)
}

// stopped returns the conditions of an object whose operands cannot be brought to what it declares.
func stopped(reason, message, progress string) []metav1.Condition {
	return []metav1.Condition{
		condition(v1alpha2.ConditionReady, metav1.ConditionFalse, reason, message),
		condition(v1alpha2.ConditionProgressing, metav1.ConditionFalse, reason, progress),
		condition(v1alpha2.ConditionDegraded, metav1.ConditionTrue, reason, message),
	}
}

// takenBack returns the conditions of an object whose change failed: what runs is what served last.
func takenBack(state observed, result outcome) []metav1.Condition {
	progress := rolloutOf(state.deployment)
	rolling, message := result.failed != nil || !progress.complete, progress.message
	if failing := operandFailure(state); rolling && failing != nil && result.failed == nil {
		message += ": " + failing.message
	}
	out := stopped(v1alpha2.ReasonRolledBack, result.blockers[0].message+takenBackEnd, message)
	if rolling {
		out[1].Status = metav1.ConditionTrue
	}
	return out
}

// takenBackEnd says what runs, and the way out.
const takenBackEnd = "; what served before runs again. Change the object, or what it names, to try again"

func blockedMessage(state observed, blockers []failure) string {
	message := blockers[0].message
	if more := len(blockers) - 1; more > 0 {
		message += fmt.Sprintf("; and %d more in status.blockedBy", more)
	}
	if state.deployment == nil {
		return message + "; nothing is created before that"
	}
	return message + "; running Pods are unchanged"
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
	if desired == 0 && status.ObservedGeneration == 0 && status.Replicas == 0 {
		// Nobody has looked at it yet, and nobody has to: it has no Pods and asks for none.
		return rollout{complete: true, reason: v1alpha2.ReasonRolloutInProgress, message: "0 of 0 replicas are ready"}
	}
	if status.ObservedGeneration < deployment.Generation {
		return rollout{desired: desired, reason: v1alpha2.ReasonRolloutInProgress, message: "the Deployment was changed, its rollout begins"}
	}
	out := rollout{
		desired: desired,
		reason:  v1alpha2.ReasonRolloutInProgress,
		message: fmt.Sprintf("%d of %d replicas are ready, %d updated", status.ReadyReplicas, desired, status.UpdatedReplicas),
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

// maxMessage keeps a condition readable, and is how many bytes the API server takes as the note of an Event.
const maxMessage = 1024

// ellipsis ends what was cut.
const ellipsis = "…"

// truncate cuts a message that has too many bytes, at the end of a character.
func truncate(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= maxMessage {
		return message
	}
	end := maxMessage - len(ellipsis)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + ellipsis
}

// writeDelay tells how long a status may wait before it is written: not at all when it says something new, and to the
// end of the current slot when, while a rollout runs or changes are blocked, only counts moved. A rollout of many Pods thus costs a few
// writes and not one for each Pod. Negative: there is nothing to write, because nothing differs, or nothing but counts
// while no Pod is ready yet: those go with the next write, be it about readiness or a failure.
func writeDelay(old, updated *v1alpha2.NginxOperatorStatus, now time.Time) time.Duration {
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
