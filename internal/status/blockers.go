package status

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/live"
)

const (
	// maxBlockers is the schema's limit of status.blockedBy, minus one entry for Paused.
	maxBlockers = 63
	// maxBlockerBytes is the limit for the messages of all blockers together. They quote the user's
	// text.
	maxBlockerBytes = 16 << 10
)

// blockedBy returns the reasons why the running state differs from the spec: why the spec is not
// applied, the child that cannot be written, why Pods do not serve, the failures of children that
// no Pod depends on, and spec.paused.
func blockedBy(state live.Observed, result Outcome, beside []failure.Failure) []v1alpha2.Blocker {
	found := result.reasons()
	if failed := result.Failure; failed != nil && !isTransient(failed, result) {
		found = append(found, *failed)
	}
	// The failing Pods of a change that was rolled back will end soon.
	isRolledBack := result.IsRolledBack() || result.Failed != nil
	if progress := health.ProgressOf(state.Deployment); !progress.Complete && (progress.Stalled || !isRolledBack) {
		found = append(found, health.Failures(state.Deployment, state.Pods)...)
	}
	for i := range beside {
		if !isTransient(&beside[i], result) {
			found = append(found, beside[i])
		}
	}
	var out []v1alpha2.Blocker
	seen, bytes := sets.New[v1alpha2.Blocker](), 0
	for _, one := range found {
		blocker := v1alpha2.Blocker{Reason: one.Reason, Message: one.Message}
		if seen.Has(blocker) {
			continue
		}
		seen.Insert(blocker)
		blocker.Message = failure.Truncate(blocker.Message)
		if bytes += len(blocker.Message); len(out) == maxBlockers || bytes > maxBlockerBytes {
			break
		}
		out = append(out, blocker)
	}
	if len(result.Waiting) > 0 {
		out = append(out, v1alpha2.Blocker{Reason: v1alpha2.ReasonPaused, Message: failure.Truncate(pausedMessage(result))})
	}
	return out
}
