// Package status computes the status of an NginxOperator from the live state and the outcome of a
// reconcile. It is pure.
package status

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/resolve"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/internal/wellknown"
)

// Compute returns the status for the live state and the outcome of a reconcile. From the current
// status it retains the transition times and, while the spec cannot be used, the fields about the
// applied declaration. It also returns the delay until the status may change with time, or 0.
func Compute(
	object *v1alpha2.NginxOperator, state live.Observed, result Outcome, now time.Time,
) (status v1alpha2.NginxOperatorStatus, again time.Duration) {
	result.persistent = persists(object.Status.Conditions, now)
	beside := slices.Concat(result.Independent, MissingFailures(result.Applied), routeFailures(result.Applied, state.Route))
	status = v1alpha2.NginxOperatorStatus{
		ObservedGeneration: object.Generation,
		Selector:           labels.SelectorFromSet(wellknown.Selector(object.Name)).String(),
		RelatedObjects:     related(object, state, result),
		BlockedBy:          blockedBy(state, result, beside),
		LastGoodRevision:   lastGood(object, state, result),
		Certificates:       object.Status.Certificates,
		PatchedKinds:       object.Status.PatchedKinds,
		AcceptedValues:     result.Accepted,
		DeclaredRevision:   declaredRevision(object, state, result),
	}

	status.FailedRevisions = failedRevisions(object, status.LastGoodRevision, result, now)
	status.StoredRevision = storedRevision(object, status.LastGoodRevision, state, result)
	applied := result.Applied
	if len(result.Waiting) > 0 {
		applied = nil
	}
	if applied != nil && applied.Children != nil {
		status.PatchedKinds = applied.PatchedKinds(object.Status.PatchedKinds)
	}

	if len(state.Service) > 0 {
		status.Addresses = addressesOf(state)
		status.URL = object.Status.URL
		if applied != nil {
			status.URL = instanceURL(object, applied, state)
		}
	}

	if state.Deployment != nil {
		status.Image = object.Status.Image
		if applied != nil && (result.Failure == nil || status.Image == "") {
			status.Image = applied.Pods.Image()
		}

		status.Replicas = state.Deployment.Status.Replicas
		status.ReadyReplicas = state.Deployment.Status.ReadyReplicas
		status.UpdatedReplicas = state.Deployment.Status.UpdatedReplicas
	}

	updated := conditions(object, state, result, beside)
	before := slices.Clone(object.Status.Conditions)
	if old := outdated(result.Outdated); old != nil {
		updated = append(updated, *old)
	} else if result.Resolved {
		meta.RemoveStatusCondition(&before, v1alpha2.ConditionOutdated)
	}

	if result.Resolved {
		var valid *metav1.Condition
		status.Certificates, valid, again = mountedCertificates(object.Status, state.Deployment, result, now)
		if valid != nil {
			updated = append(updated, *valid)
		} else {
			meta.RemoveStatusCondition(&before, v1alpha2.ConditionCertificatesValid)
		}
	}

	for _, condition := range before {
		next := meta.FindStatusCondition(updated, condition.Type)
		if next != nil && next.Reason == v1alpha2.ReasonAPIError && condition.Reason != next.Reason {
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

// related returns the existing children of the applied or else the earlier declaration.
func related(object *v1alpha2.NginxOperator, state live.Observed, result Outcome) []v1alpha2.RelatedObject {
	applied := live.References(result.Children())
	if len(result.Waiting) > 0 || result.Children() == nil {
		applied = object.Status.RelatedObjects
	}

	isGone := func(child v1alpha2.RelatedObject) bool { return !slices.Contains(state.Related, child) }
	return slices.DeleteFunc(slices.Clone(applied), isGone)
}

// apiErrorLasts is longer than a restart of the API server takes.
const apiErrorLasts = 30 * time.Second

func persists(conditions []metav1.Condition, now time.Time) bool {
	found := meta.FindStatusCondition(conditions, v1alpha2.ConditionProgressing)
	return found != nil && found.Reason == v1alpha2.ReasonAPIError &&
		(found.Status == metav1.ConditionFalse || now.Sub(found.LastTransitionTime.Time) >= apiErrorLasts)
}

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
	// Applied is the applied declaration with its children, or nil if nothing was applied.
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
