package status

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/change"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
)

// maxFailed is the schema's limit of status.failedRevisions.
const maxFailed = 4

// lastGood returns the last revision whose Pods were all ready, or that had no replicas.
func lastGood(object *v1alpha2.NginxOperator, state live.Observed, result Outcome) *v1alpha2.GoodRevision {
	before := object.Status.LastGoodRevision
	if result.Applied == nil || result.Applied.Pods == nil || object.Spec.Paused || state.Deployment == nil ||
		result.Failure != nil && (result.Replaced || !revision.HasPods(object, state.Deployment, result.Applied.Pods)) {
		return before
	}

	progress, applied := health.ProgressOf(state.Deployment), result.Applied.Pods
	if !progress.Complete || progress.Desired == 0 && (before == nil || result.Attempt != nil) || applied.Change.Pods() == "" {
		return before
	}

	if before != nil && applied.Change.SamePods(change.ID(before.Change)) {
		if applied.Change.User() == "" || before.Change == string(applied.Change) {
			return before
		}

		updated := *before
		updated.Change = string(applied.Change)
		return &updated
	}

	return &v1alpha2.GoodRevision{
		Revision: rollout.NameOf(object, applied.Change), Change: string(applied.Change), Image: applied.Image(),
		ConfigHash: applied.ConfigHash(), Time: metav1.Now(),
	}
}

// IsNewGood reports whether the last good revision has changed. The first one counts only if the
// object waits for a rollout slot.
func IsNewGood(before, now *v1alpha2.GoodRevision, result Outcome) bool {
	if before == nil || now == nil {
		return now != nil && result.WaitsFor != ""
	}
	return before.Change != now.Change
}

// failedRevisions returns the requested revisions that failed and did not become good.
func failedRevisions(
	object *v1alpha2.NginxOperator, good *v1alpha2.GoodRevision, result Outcome, now time.Time,
) []v1alpha2.FailedRevision {
	out := slices.Clone(object.Status.FailedRevisions)
	if declared := result.Declared; declared != nil && !object.Spec.Paused {
		out = slices.DeleteFunc(out, func(failed v1alpha2.FailedRevision) bool {
			of := change.ID(failed.Change)
			isRequested := of.SamePods(declared.Change) || result.Retries != nil && result.Retries.Revision == failed.Revision
			isGood := good != nil && of.SamePods(change.ID(good.Change))
			return !isRequested || isGood || isApplied(failed, result) && result.Attempt == nil
		})
	}

	for i := range out {
		if isApplied(out[i], result) && result.Failure == nil && out[i].AttemptTime == nil && !object.Spec.Paused {
			out[i].AttemptTime, out[i].NextAttemptTime = ptr.To(metav1.NewTime(now.Truncate(time.Second))), nil
		}
	}

	if failed := cmp.Or(result.Failed, result.Forgotten); failed != nil {
		out = slices.DeleteFunc(out, func(one v1alpha2.FailedRevision) bool {
			return one.Revision == failed.Revision || change.ID(one.Change).SamePods(change.ID(failed.Change))
		})
		out = append(out, *failed)
	}

	return out[max(0, len(out)-maxFailed):]
}

func isApplied(failed v1alpha2.FailedRevision, result Outcome) bool {
	return result.Applied != nil && result.Applied.Pods != nil && result.Applied.Pods.Change.SamePods(change.ID(failed.Change))
}

// storedRevision returns the reference to what is in effect. It is not needed any more once the
// Pods of the spec are good, and its entrance is not while that of the spec is applied.
func storedRevision(
	object *v1alpha2.NginxOperator, good *v1alpha2.GoodRevision, state live.Observed, result Outcome,
) *v1alpha2.StoredRevision {
	before, applied := object.Status.StoredRevision, result.Applied
	if before == nil || applied == nil || applied.Pods == nil || object.Spec.Paused || result.Failure != nil || result.Declared == nil ||
		applied.Entrance != result.Declared {
		return before
	}
	if good != nil && health.ProgressOf(state.Deployment).Complete && applied.Pods.Change.SamePods(change.ID(good.Change)) &&
		result.State != rollout.StateRolledBack && result.Failed == nil {
		return nil
	}

	updated := *before
	updated.HasEntrance = false
	return &updated
}

// declaredRevision returns the ID of the Pods that were declared last.
func declaredRevision(object *v1alpha2.NginxOperator, state live.Observed, result Outcome) *v1alpha2.DeclaredRevision {
	before, applied := object.Status.DeclaredRevision, result.Applied
	if state.Deployment == nil || operand.IsMarkedAsBefore(state.Deployment) || applied == nil || applied.Pods == nil ||
		object.Spec.Paused || result.Failure != nil && !revision.HasPods(object, state.Deployment, applied.Pods) {
		return before
	}

	id := applied.Pods.Change
	if before != nil && change.ID(before.Change).SamePods(id) && id.User() == "" {
		return before
	}
	return &v1alpha2.DeclaredRevision{Revision: rollout.NameOf(object, id), Change: string(id)}
}
