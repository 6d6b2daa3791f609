package status

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/carried"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/record"
	"github.com/example/nginx-operator/internal/wellknown"
)

// maxFailed is the schema's limit of status.failedRevisions.
const maxFailed = 4

// lastGood returns the last revision whose Pods were all ready, with the entrance that is in effect.
// Without replicas, a change counts as good once it is written.
func lastGood(object *v1alpha2.NginxOperator, state live.Observed, result Outcome) *v1alpha2.GoodRevision {
	before, applied := object.Status.LastGoodRevision, result.Applied
	if applied == nil || object.Spec.Paused || state.Deployment == nil ||
		result.Failure != nil && (result.Replaced || !hasPods(state, applied)) {
		return before
	}
	progress, good := health.ProgressOf(state.Deployment), result.Good
	if progress.Complete && (progress.Desired > 0 || result.Attempt == nil) {
		good = applied.Declaration
	}
	if good == nil || before == nil && progress.Desired == 0 || before != nil && before.Revision == good.Revision.Name {
		return before
	}
	return &v1alpha2.GoodRevision{
		Revision: good.Revision.Name, Image: good.Inputs.Image, ConfigHash: good.Inputs.Config.Hash, Time: metav1.Now(),
	}
}

// hasPods reports whether the Deployment has the Pods of a declaration, although another child could
// not be written.
func hasPods(state live.Observed, applied *record.Rendering) bool {
	return state.Deployment.Labels[wellknown.LabelRecord] == applied.Inputs.Record
}

// IsNewGood reports whether the last good revision has changed. The first one counts only if the
// object waits for a rollout slot.
func IsNewGood(before, now *v1alpha2.GoodRevision, result Outcome) bool {
	if before == nil || now == nil {
		return now != nil && result.WaitsFor != ""
	}
	return before.Revision != now.Revision
}

// failedRevisions returns the revisions that were rolled back, while the object requests them. A
// revision that is attempted again stays until it is good.
func failedRevisions(
	object *v1alpha2.NginxOperator, good *v1alpha2.GoodRevision, result Outcome, now time.Time,
) []v1alpha2.FailedRevision {
	out := slices.Clone(object.Status.FailedRevisions)
	if result.Candidates != nil && !object.Spec.Paused {
		out = slices.DeleteFunc(out, func(failed v1alpha2.FailedRevision) bool {
			isGood := good != nil && good.Revision == failed.Revision
			return !slices.Contains(result.Candidates, failed.Revision) || isGood || isApplied(failed, result) && result.Attempt == nil
		})
	}
	for i := range out {
		if isApplied(out[i], result) && result.Failure == nil && out[i].AttemptTime == nil && !object.Spec.Paused {
			out[i].AttemptTime, out[i].NextAttemptTime = ptr.To(metav1.NewTime(now.Truncate(time.Second))), nil
		}
	}
	if failed := cmp.Or(result.Failed, result.Forgotten); failed != nil {
		out = slices.DeleteFunc(out, func(one v1alpha2.FailedRevision) bool { return one.Revision == failed.Revision })
		out = append(out, *failed)
	}
	return out[max(0, len(out)-maxFailed):]
}

// isApplied reports whether a failed revision is applied.
func isApplied(failed v1alpha2.FailedRevision, result Outcome) bool {
	return result.Applied != nil && failed.Revision == result.Applied.Revision.Name
}

// firstDeclarationHash returns the hash of the record that the Deployment carries, or "" if it
// carries none. Only a hash that is in the status, or that this reconcile has written, is returned:
// another client may have written the annotation.
func firstDeclarationHash(object *v1alpha2.NginxOperator, state live.Observed, result Outcome) string {
	if state.Deployment == nil {
		return object.Status.FirstDeclarationHash // the cache may be stale after a start
	}
	found, _ := carried.Parse(state.Deployment.Annotations[wellknown.AnnotationFirstDeclaration])
	if found.Hash != object.Status.FirstDeclarationHash && (result.Applied == nil || found.Hash != result.Applied.CarriedHash()) {
		return ""
	}
	return found.Hash
}
