package rollout

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"
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

// A release of the operator may render other children of the same spec, with another default image,
// nginx.conf, or Pod template. Such a change waits for a rollout slot. Until then the Pods stay
// what was declared last.

// slot is the place of an object in the fleet rollout.
type slot struct {
	// place is nil if it is not known.
	place *fleet.Place
	// waits means that the object waits for a rollout slot.
	waits bool
	// retries is the failed revision of an earlier release that the object rolls out again, or nil.
	retries *v1alpha2.FailedRevision
}

func outside() slot { return slot{place: ptr.To(fleet.Outside)} }

// slotOf returns the place of an object, and requests a rollout slot if the object needs one.
func (r Decider) slotOf(ctx context.Context, object *v1alpha2.NginxOperator, declared *revision.Declaration) (slot, error) {
	deployment := r.Live.Deployment()
	live, good := r.changes(object, declared)
	if object.Spec.Paused || deployment == nil || declared.Change.SamePods(good) ||
		operand.ReplicasOf(object, deployment).Number == 0 { // without Pods nothing rolls out
		return outside(), nil
	}
	begun := declared.Change.SamePods(live)
	failed := FailedOf(&object.Status, declared.Change)
	switch {
	case !declared.Change.SameUser(good) && (begun || !declared.Change.SameUser(live)), declared.Change.User() == "":
		return r.slotOfRetry(ctx, object, declared, begun)
	case failed != nil:
		return slot{place: ptr.To(placeOfRolledBack(failed.Reason))}, nil
	case begun:
		return slot{place: ptr.To(fleet.Rolling)}, nil
	case !live.SameUser(good) && FailedOf(&object.Status, live) != nil:
		return r.slotOfRetry(ctx, object, declared, false)
	}

	progress := health.ProgressOf(deployment)
	group := groupOf(object, progress)
	// The status needs a last good revision first. Without one the rollout cannot be rolled back.
	proven := !progress.Complete || live.SamePods(good)
	if proven && r.Fleet.Ask(client.ObjectKeyFromObject(object), group) {
		return slot{place: ptr.To(fleet.Rolling)}, nil
	}
	return slot{place: &group, waits: true}, nil
}

// slotOfRetry returns the place of an object that the user has changed. If the change has failed
// under an earlier release, each attempt needs a slot like other changes of the release. Its
// failure is not the release's.
func (r Decider) slotOfRetry(
	ctx context.Context, object *v1alpha2.NginxOperator, declared *revision.Declaration, begun bool,
) (slot, error) {
	failed := failedBefore(&object.Status, declared.Change)
	if failed == nil {
		return outside(), nil
	}
	if mended, err := r.Resolver.IsMended(ctx, object, failed); err != nil || mended {
		return outside(), err
	}
	again := FailedOf(&object.Status, declared.Change)
	switch {
	case again != nil && !attempts(object, again, time.Now()):
		return slot{place: ptr.To(fleet.Outside), retries: failed}, nil
	case again != nil && again.AttemptTime != nil, again == nil && begun:
		return slot{place: ptr.To(fleet.Rolling), retries: failed}, nil
	case r.Fleet.Ask(client.ObjectKeyFromObject(object), fleet.WaitingUnready):
		return slot{place: ptr.To(fleet.Rolling), retries: failed}, nil
	}
	return slot{place: ptr.To(fleet.WaitingUnready), waits: true, retries: failed}, nil
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

// groupOf returns the group in which an object waits.
func groupOf(object *v1alpha2.NginxOperator, progress health.Progress) fleet.Place {
	switch {
	case !progress.Complete:
		return fleet.WaitingUnready
	case wellknown.IsCanary(object.Labels):
		return fleet.WaitingCanary
	}
	return fleet.Waiting
}

// differences describes the changes by a release.
func differences(declared, last *revision.Declaration) string {
	var news []string
	if image := declared.Image(); image != last.Image() {
		news = append(news, fmt.Sprintf("image %q", image[:min(len(image), maxTried)]))
	}
	if image := declared.Exporter(); image != last.Exporter() {
		news = append(news, fmt.Sprintf("exporter image %q", image[:min(len(image), maxTried)]))
	}
	if declared.ConfigHash() != last.ConfigHash() {
		news = append(news, "configuration")
	}
	if len(news) == 0 {
		news = append(news, "Pod template")
	}
	return strings.Join(news, ", ")
}

// WaitingMessage returns the message for an object that waits for a rollout slot.
func WaitingMessage(changes string) string {
	return fmt.Sprintf("waiting for a rollout slot: the operator upgrade changes %s; the running Pods serve the spec", changes)
}

// EvaluateForFleet returns the place of an object after its children were written. failed is the
// revision that was just rolled back, and refused the failure to write, or nil. A change that
// failed under an earlier release shows nothing about this one.
func (r Decider) EvaluateForFleet(
	good *v1alpha2.GoodRevision, decided Decision, failed *v1alpha2.FailedRevision, refused *failure.Failure,
) (*fleet.Place, error) {
	place, err := r.placeOf(good, decided, failed, refused)
	switch {
	case decided.Retries == nil || place == nil || *place != fleet.Failed:
		return place, err
	case failed != nil: // the rollback follows, and then frees the slot
		return decided.Place, err
	}
	return ptr.To(fleet.Outside), err
}

// placeOf returns the place of an object. A rollout that has started is evaluated by the Pods of
// its newest ReplicaSet.
func (r Decider) placeOf(
	good *v1alpha2.GoodRevision, decided Decision, failed *v1alpha2.FailedRevision, refused *failure.Failure,
) (*fleet.Place, error) {
	deployment := r.Live.Deployment()
	if decided.Place == nil || *decided.Place != fleet.Rolling {
		return decided.Place, nil
	}
	switch {
	case good != nil && decided.Declared != nil && decided.Declared.Change.SamePods(change.ID(good.Change)):
		return ptr.To(fleet.Outside), nil
	case failed != nil:
		return ptr.To(placeOfRolledBack(failed.Reason)), nil
	case refused != nil:
		return ptr.To(PlaceOfFailure(refused)), nil
	case !health.RollsOut(deployment):
		return decided.Place, nil
	}
	newest, err := r.Live.NewestPods()
	if err != nil || !newest.Known {
		return decided.Place, err
	}
	if failing := health.Worst(deployment, newest.Pods); failing != nil && PlaceOfFailure(failing) == fleet.Outside {
		return ptr.To(fleet.Outside), nil
	}
	if failing := health.RolloutFailure(deployment, newest.Pods, newest.Began); failing != nil {
		return ptr.To(PlaceOfFailure(failing)), nil
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

// placeOfRolledBack returns the place of an object whose rollout was rolled back for a reason.
func placeOfRolledBack(reason string) fleet.Place {
	switch reason {
	case v1alpha2.ReasonQuotaExceeded, v1alpha2.ReasonForbidden, v1alpha2.ReasonNameConflict, v1alpha2.ReasonNamespaceTerminating,
		v1alpha2.ReasonForgedContent, v1alpha2.ReasonDeploymentPaused, v1alpha2.ReasonReferenceNotFound, v1alpha2.ReasonAPIError:
		return fleet.Outside
	}
	return fleet.Failed
}
