package rollout

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/change"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/wellknown"
)

// A release of the operator may render other Pods of the same spec. Such a change waits for a
// rollout slot. Until then the Pods stay what was declared last.

// slotOf returns the place of an object, and requests a rollout slot if the object needs one. It
// also returns the failed revision of an earlier release that the object rolls out again, or nil.
func (r Decider) slotOf(
	ctx context.Context, object *v1alpha2.NginxOperator, declared *revision.Declaration,
) (fleet.Place, *v1alpha2.FailedRevision, error) {
	deployment := r.Live.Deployment()
	live, good := r.changes(object, declared)
	if r.Fleet == nil || object.Spec.Paused || deployment == nil || declared.Change.SamePods(good) ||
		operand.ReplicasOf(object, deployment).Number == 0 { // without Pods nothing rolls out
		return fleet.Outside, nil, nil
	}

	begun := declared.Change.SamePods(live)
	failed := FailedOf(&object.Status, declared.Change)
	switch {
	case !declared.Change.SameUser(good) && (begun || !declared.Change.SameUser(live)), declared.Change.User() == "":
		return r.slotOfRetry(ctx, object, declared, begun)
	case failed != nil:
		return placeOfRolledBack(failed.Reason), nil, nil
	case begun:
		return fleet.Rolling, nil, nil
	case !live.SameUser(good) && FailedOf(&object.Status, live) != nil:
		return r.slotOfRetry(ctx, object, declared, false)
	}

	progress := health.ProgressOf(deployment)
	group := groupOf(object, progress)

	// The status needs a last good revision first. Without one the rollout cannot be rolled back.
	proven := !progress.Complete || live.SamePods(good)
	if proven && r.Fleet.Ask(client.ObjectKeyFromObject(object), group) {
		return fleet.Rolling, nil, nil
	}

	return group, nil, nil
}

// slotOfRetry is slotOf for an object that the user has changed. If the change has failed under an
// earlier release, each attempt needs a slot like other changes of the release. Its failure is not
// the release's.
func (r Decider) slotOfRetry(
	ctx context.Context, object *v1alpha2.NginxOperator, declared *revision.Declaration, begun bool,
) (fleet.Place, *v1alpha2.FailedRevision, error) {
	failed := failedBefore(&object.Status, declared.Change)
	if failed == nil {
		return fleet.Outside, nil, nil
	}
	if mended, err := r.Resolver.IsMended(ctx, object, failed); err != nil || mended {
		return fleet.Outside, nil, err
	}

	again := FailedOf(&object.Status, declared.Change)
	switch {
	case again != nil && !attempts(object, again, time.Now()):
		return fleet.Outside, failed, nil
	case again != nil && again.AttemptTime != nil, again == nil && begun,
		r.Fleet.Ask(client.ObjectKeyFromObject(object), fleet.WaitingUnready):
		return fleet.Rolling, failed, nil
	}

	return fleet.WaitingUnready, failed, nil
}

// failedBefore returns the failed revision that differs from a change only by the release, or nil.
func failedBefore(status *v1alpha2.NginxOperatorStatus, id change.ID) *v1alpha2.FailedRevision {
	for i := range status.FailedRevisions {
		if of := change.ID(status.FailedRevisions[i].Change); of.SameUser(id) && !of.SamePods(id) {
			return &status.FailedRevisions[i]
		}
	}
	return nil
}

func groupOf(object *v1alpha2.NginxOperator, progress health.Progress) fleet.Place {
	switch {
	case !progress.Complete:
		return fleet.WaitingUnready
	case wellknown.IsCanary(object.Labels):
		return fleet.WaitingCanary
	}
	return fleet.Waiting
}

// EvaluateForFleet returns the place of an object after its children were written. failed is the
// revision that was just rolled back, and refused the failure to write, or nil. A change that
// failed under an earlier release shows nothing about this one.
func (r Decider) EvaluateForFleet(
	good *v1alpha2.GoodRevision, decided Decision, failed *v1alpha2.FailedRevision, refused *failure.Failure,
) (fleet.Place, error) {
	place, err := r.placeOf(good, decided, failed, refused)
	switch {
	case decided.Retries == nil || place != fleet.Failed:
		return place, err
	case failed != nil: // the rollback follows, and then frees the slot
		return decided.Place, err
	}
	return fleet.Outside, err
}

// placeOf returns the place of an object by the Pods of its newest ReplicaSet.
func (r Decider) placeOf(
	good *v1alpha2.GoodRevision, decided Decision, failed *v1alpha2.FailedRevision, refused *failure.Failure,
) (fleet.Place, error) {
	deployment := r.Live.Deployment()
	switch {
	case decided.Place != fleet.Rolling:
		return decided.Place, nil
	case good != nil && decided.Declared != nil && decided.Declared.Change.SamePods(change.ID(good.Change)):
		return fleet.Outside, nil
	case failed != nil:
		return placeOfRolledBack(failed.Reason), nil
	case refused != nil:
		return PlaceOfFailure(refused), nil
	case !health.ProgressOf(deployment).Rolling:
		return decided.Place, nil
	}

	newest, err := r.Live.NewestPods()
	if err != nil || !newest.Known {
		return decided.Place, err
	}
	if failing := health.Worst(deployment, newest.Pods); failing != nil && PlaceOfFailure(failing) == fleet.Outside {
		return fleet.Outside, nil
	}
	if failing := health.RolloutFailure(deployment, newest.Pods, newest.Began); failing != nil {
		return PlaceOfFailure(failing), nil
	}

	return decided.Place, nil
}

// PlaceOfFailure returns the place of an object with a failed rollout: outside if the namespace and
// not the release causes the failure, and rolling if the failure can pass.
func PlaceOfFailure(found *failure.Failure) fleet.Place {
	if found.CanPass() {
		return fleet.Rolling
	}
	return placeOfRolledBack(found.Reason)
}

func placeOfRolledBack(reason string) fleet.Place {
	switch reason {
	case v1alpha2.ReasonQuotaExceeded, v1alpha2.ReasonForbidden, v1alpha2.ReasonNameConflict, v1alpha2.ReasonNamespaceTerminating,
		v1alpha2.ReasonForgedContent, v1alpha2.ReasonDeploymentPaused, v1alpha2.ReasonReferenceNotFound, v1alpha2.ReasonAPIError:
		return fleet.Outside
	}
	return fleet.Failed
}
