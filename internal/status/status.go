// Package status computes the status of an NginxOperator from the live state and the outcome of a
// reconcile. It is pure.
package status

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/live"
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

// related returns the existing children of the applied declaration or, if none was applied, of the
// earlier one.
func related(object *v1alpha2.NginxOperator, state live.Observed, result Outcome) []v1alpha2.RelatedObject {
	applied := live.References(result.Children())
	if len(result.Waiting) > 0 || result.Children() == nil {
		applied = object.Status.RelatedObjects
	}

	isGone := func(child v1alpha2.RelatedObject) bool { return !slices.Contains(state.Related, child) }
	return slices.DeleteFunc(slices.Clone(applied), isGone)
}

// apiErrorLasts is how long requests must fail before the object counts as degraded. A restart of
// the API server takes less.
const apiErrorLasts = 30 * time.Second

// persists reports whether requests have failed for apiErrorLasts, according to the conditions.
func persists(conditions []metav1.Condition, now time.Time) bool {
	found := meta.FindStatusCondition(conditions, v1alpha2.ConditionProgressing)
	return found != nil && found.Reason == v1alpha2.ReasonAPIError &&
		(found.Status == metav1.ConditionFalse || now.Sub(found.LastTransitionTime.Time) >= apiErrorLasts)
}
