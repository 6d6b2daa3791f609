package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/record"
	"github.com/example/nginx-operator/internal/wellknown"
)

// A release of the operator may render other children of the same spec, with another default image,
// nginx.conf, or Pod template. Such a change waits for a rollout slot. Until then the children are
// rendered from the last applied declaration.

// slot is the place of an object in the fleet rollout.
type slot struct {
	// place is nil if it is not known.
	place *fleet.Place
	// waits is the declaration that stays while the object waits for a rollout slot, or nil if it
	// does not wait.
	waits *record.Declaration
	// retries is the failed revision of an earlier release that the object rolls out again, or nil.
	retries *v1alpha2.FailedRevision
	// changes describes what the release changes.
	changes string
}

// slotOf returns the place of an object, and requests a rollout slot if the object needs one.
func (r Decider) slotOf(ctx context.Context, declared *record.Declaration) (slot, error) {
	object, name := declared.Object, declared.Revision.Name
	good := object.Status.LastGoodRevision
	deployment := r.Live.Deployment()
	if object.Spec.Paused || deployment == nil || good != nil && good.Revision == name {
		return slot{place: ptr.To(fleet.Outside)}, nil
	}

	revisions, err := r.Records.List(object)
	if err != nil {
		return slot{}, err
	}
	before, begun, err := r.before(ctx, declared, revisions)
	if err != nil {
		return slot{}, err
	}
	last, err := r.ofOtherRelease(ctx, declared, before)
	if err != nil {
		return slot{}, err
	}
	switch {
	case operand.ReplicasOf(object, deployment).Number == 0: // without Pods nothing rolls out
		return slot{place: ptr.To(fleet.Outside)}, nil
	case last == nil:
		return r.slotOfRetry(ctx, declared, revisions, deployment, begun)
	case begun:
		if failed := record.Failed(&object.Status, name); failed != nil {
			return slot{place: ptr.To(placeOfRolledBack(failed.Reason))}, nil
		}
		return slot{place: ptr.To(fleet.Rolling)}, nil
	}

	progress := health.ProgressOf(deployment)
	group := groupOf(object, progress)
	// The status needs a last good revision first. Without one the rollout cannot be rolled back.
	proven := !progress.Complete || good != nil && good.Revision == before.Name
	if proven && r.Fleet.Ask(client.ObjectKeyFromObject(object), group) {
		return slot{place: ptr.To(fleet.Rolling)}, nil
	}
	return slot{place: &group, waits: last, changes: differences(declared, last)}, nil
}

// before is predecessor for a declaration. An edit of the entrance does not end a rollout.
func (r Decider) before(
	ctx context.Context, declared *record.Declaration, revisions []appsv1.ControllerRevision,
) (before *appsv1.ControllerRevision, begun bool, err error) {
	object, good := declared.Object, declared.Object.Status.LastGoodRevision
	before, begun = predecessor(object, revisions, r.Live.Deployment(), declared.Revision.Name)
	if begun || before == nil || good == nil || before.Name == good.Revision {
		return before, begun, nil
	}
	applied, err := r.restore(ctx, object, before.Name)
	if err != nil || applied == nil || !record.SamePods(declared, applied) {
		return before, false, err
	}
	return recordOf(revisions, good.Revision), true, nil
}

// predecessor returns the record before a revision, or nil, and whether the rollout of the revision
// has started. After the start it is the last good revision, and before the start it is the last
// applied record.
func predecessor(
	object *v1alpha2.NginxOperator, revisions []appsv1.ControllerRevision, deployment *appsv1.Deployment, name string,
) (before *appsv1.ControllerRevision, begun bool) {
	begun = record.HasFailed(&object.Status, name) || recordOf(revisions, name) != nil
	if !begun {
		return record.Applied(object, revisions, deployment), false
	}
	good := object.Status.LastGoodRevision
	if good == nil {
		return nil, true
	}
	return recordOf(revisions, good.Revision), true
}

// recordOf returns the record with a name, or nil.
func recordOf(revisions []appsv1.ControllerRevision, name string) *appsv1.ControllerRevision {
	at := slices.IndexFunc(revisions, func(one appsv1.ControllerRevision) bool { return one.Name == name })
	if at < 0 {
		return nil
	}
	return &revisions[at]
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

// ofOtherRelease returns the declaration of a record if it differs from the current one only by the
// release, and nil otherwise.
func (r Decider) ofOtherRelease(
	ctx context.Context, declared *record.Declaration, before *appsv1.ControllerRevision,
) (*record.Declaration, error) {
	if before == nil {
		return nil, nil
	}
	last, err := r.Records.Restore(ctx, declared.Object, before)
	if record.IsUnusable(err) { // a release may refuse what an earlier one took, and the object's way out is a change
		return nil, nil
	}
	if err != nil || differences(declared, last) == "" {
		return nil, err
	}
	same, err := r.isSameUserPart(ctx, declared, last)
	if err != nil || !same {
		return nil, err
	}
	return withEntranceOf(declared, last)
}

// differences describes the changes by a release, or returns "" if there are none.
func differences(declared, last *record.Declaration) string {
	var news []string
	if image := declared.Inputs.Image; image != last.Inputs.Image {
		news = append(news, fmt.Sprintf("image %q", image[:min(len(image), maxTried)]))
	}
	if image := declared.Inputs.Exporter; image != last.Inputs.Exporter {
		news = append(news, fmt.Sprintf("exporter image %q", image[:min(len(image), maxTried)]))
	}
	if declared.Inputs.Config.Hash != last.Inputs.Config.Hash {
		news = append(news, "configuration")
	}
	if declared.Inputs.Edition != last.Inputs.Edition {
		news = append(news, "Pod template")
	}
	return strings.Join(news, ", ")
}

// WaitingMessage returns the message for an object that waits for a rollout slot.
func WaitingMessage(changes string) string {
	return fmt.Sprintf("waiting for a rollout slot: the operator upgrade changes %s; the running Pods serve the spec", changes)
}

// EvaluateForFleet returns the place of an object after its children were written. failed is the
// revision that was just rolled back, and refused the failure to write, or nil. A change that failed
// under an earlier release shows nothing about this one.
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

// placeOf returns the place of an object. A rollout that has started is evaluated by the Pods of its
// newest ReplicaSet.
func (r Decider) placeOf(
	good *v1alpha2.GoodRevision, decided Decision, failed *v1alpha2.FailedRevision, refused *failure.Failure,
) (*fleet.Place, error) {
	deployment := r.Live.Deployment()
	if decided.Place == nil || *decided.Place != fleet.Rolling {
		return decided.Place, nil
	}
	switch {
	case good != nil && good.Revision == decided.Candidates[0]:
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
