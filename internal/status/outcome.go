package status

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/resolve"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
)

// Outcome has the results of the steps of a reconcile that precede the status.
type Outcome struct {
	rollout.Resolution
	rollout.Decision
	Written
	// Unusable are the missing and unusable objects that the running Pods need.
	Unusable []resolve.Unusable
	// Failed is the applied revision if its rollout has just failed, or nil.
	Failed *v1alpha2.FailedRevision
	// persistent reports whether the API server has refused requests for a while. Compute sets it.
	persistent bool
}

// Written are the results of writing children.
type Written struct {
	// Applied is the declaration that was applied, with its children, or nil if there is none.
	Applied *revision.Rendering
	// Failure is why a child that Pods depend on could not be written, or nil if all could.
	Failure *failure.Failure
	// Independent are the failures that do not affect Ready: children that no Pod depends on, and
	// children that another client keeps changing.
	Independent []failure.Failure
	// Waiting describes the changes that spec.paused blocks.
	Waiting []string
	// Replaced reports whether Failure is a forged child that this reconcile has replaced.
	Replaced bool
}

// Children returns the children that were applied, or nil.
func (w Written) Children() []client.Object {
	if w.Applied == nil {
		return nil
	}
	return w.Applied.Children
}

// reasons returns the reasons why the spec is not applied, and why no Pod of the applied
// declaration can start. The latter come first, and only if no other reason names the object.
func (o Outcome) reasons() []failure.Failure {
	var out []failure.Failure
	for _, one := range o.Unusable {
		names := func(other failure.Failure) bool { return strings.Contains(other.Message, one.Object) }
		if !slices.ContainsFunc(o.Blockers, names) {
			out = append(out, one.Failure)
		}
	}

	out = append(out, o.Blockers...)
	if o.Failed != nil {
		out = append(out, failure.Failure{Reason: v1alpha2.ReasonRolledBack, Message: rollout.RolledBackMessage(o.Failed)})
	}
	return out
}

// whyUnchanged returns the reason why the running Pods do not have the current Secrets, or "".
func (o Outcome) whyUnchanged() string {
	reasons := o.reasons()
	switch {
	case len(o.Unusable) > 0:
		return o.Unusable[0].Message
	case o.Failure != nil:
		return o.Failure.Message
	case len(o.Waiting) > 0:
		return pausedMessage(o)
	case len(reasons) > 0:
		return reasons[len(reasons)-1].Message
	}

	return ""
}

// pausedMessage returns the message for changes that spec.paused blocks.
func pausedMessage(result Outcome) string {
	return "spec.paused blocks: " + strings.Join(result.Waiting, ", ")
}

// isTransient reports whether a failed write is expected to succeed without a change by the user.
func isTransient(failed *failure.Failure, result Outcome) bool {
	return result.Replaced || failed.Reason == v1alpha2.ReasonRolloutInProgress ||
		failed.Reason == v1alpha2.ReasonAPIError && !result.persistent
}

const (
	// maxBlockers is the schema's limit of status.blockedBy, minus one entry for Paused.
	maxBlockers = 63
	// maxBlockerBytes is the limit for the messages of all blockers, which quote the user's text.
	maxBlockerBytes = 16 << 10
)

// blockedBy returns the reasons why the running state differs from the spec. beside are the
// failures of children that no Pod depends on.
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
