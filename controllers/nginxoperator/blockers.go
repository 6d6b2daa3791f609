package nginxoperator

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const (
	// maxBlockers is what the schema allows; one place is left for Paused.
	maxBlockers = 63
	// maxBlockerBytes bounds the messages of all blockers together: they carry the user's text.
	maxBlockerBytes = 16 << 10
)

// blockedBy returns every reason why what runs is not what the object declares: what blocks its changes, then the child that cannot be
// written, then why Pods do not serve, then what fails beside them (the HTTPRoute, kinds that the cluster does not have), then spec.paused.
func blockedBy(state observed, result outcome, beside []failure) []v1alpha2.Blocker {
	found := slices.Clone(result.blockers)
	if failed := result.failure; failed != nil && !passes(failed, result) {
		found = append(found, *failed)
	}
	if progress := rolloutOf(state.deployment); !progress.complete && (progress.stalled || !isTakenBack(result)) {
		found = append(found, operandFailures(state)...)
	}
	found = append(found, beside...)
	var out []v1alpha2.Blocker
	seen, bytes := sets.New[failure](), 0
	for _, blocker := range found {
		if seen.Has(blocker) {
			continue
		}
		seen.Insert(blocker)
		message := truncate(blocker.message)
		if bytes += len(message); len(out) == maxBlockers || bytes > maxBlockerBytes {
			break
		}
		out = append(out, v1alpha2.Blocker{Reason: blocker.reason, Message: message})
	}
	if len(result.waiting) > 0 {
		out = append(out, v1alpha2.Blocker{Reason: v1alpha2.ReasonPaused, Message: truncate(pausedMessage(result))})
	}
	return out
}

// passes reports whether a failure to write is expected to pass by itself.
func passes(failed *failure, result outcome) bool {
	return failed.reason == v1alpha2.ReasonRolloutInProgress || failed.reason == v1alpha2.ReasonAPIError && !result.lasting
}

// isTakenBack reports whether the change was taken back. Its Pods, which fail, are on their way out.
func isTakenBack(result outcome) bool {
	return len(result.blockers) > 0 && result.blockers[len(result.blockers)-1].reason == v1alpha2.ReasonRolledBack
}
