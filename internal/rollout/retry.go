package rollout

import (
	"cmp"
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/record"
)

// slotOfRetry returns the place of an object that the user has changed. If the change has failed under
// an earlier release, each attempt needs a slot like other changes of the release. Its failure is not
// the release's.
func (r Decider) slotOfRetry(
	ctx context.Context, declared *record.Declaration, revisions []appsv1.ControllerRevision, deployment *appsv1.Deployment, begun bool,
) (slot, error) {
	object, outside := declared.Object, slot{place: ptr.To(fleet.Outside)}
	failed, err := r.failedBefore(ctx, declared, revisions)
	if err != nil || failed == nil {
		return outside, err
	}
	if mended, err := r.Inputs.IsMended(ctx, object, failed); err != nil || mended {
		return outside, err
	}
	again := record.Failed(&object.Status, declared.Revision.Name)
	switch {
	case again != nil && !attempts(object, again, time.Now()):
		return slot{place: ptr.To(fleet.Outside), retries: failed}, nil
	case again != nil && again.AttemptTime != nil, again == nil && begun:
		return slot{place: ptr.To(fleet.Rolling), retries: failed}, nil
	}

	applied := record.Applied(object, revisions, deployment)
	if applied == nil {
		return outside, nil
	}
	last, err := r.Records.Restore(ctx, object, applied)
	switch {
	case record.IsUnusable(err):
		return outside, nil
	case err != nil:
		return slot{}, err
	case r.Fleet.Ask(client.ObjectKeyFromObject(object), fleet.WaitingUnready):
		return slot{place: ptr.To(fleet.Rolling), retries: failed}, nil
	}
	return slot{place: ptr.To(fleet.WaitingUnready), waits: last, retries: failed}, nil
}

// failedBefore returns the failed revision that differs from a declaration only by the release, or nil.
func (r Decider) failedBefore(
	ctx context.Context, declared *record.Declaration, revisions []appsv1.ControllerRevision,
) (*v1alpha2.FailedRevision, error) {
	for i := range revisions {
		if revisions[i].Name == declared.Revision.Name {
			continue
		}
		failed := record.Failed(&declared.Object.Status, revisions[i].Name)
		if failed == nil {
			continue
		}
		same, err := r.ofOtherRelease(ctx, declared, &revisions[i])
		if err != nil || same != nil {
			return failed, err
		}
	}
	return nil, nil
}

// retrying returns the decision for a change that failed under an earlier release. The failed revision
// stays in the status until the change is good.
func (d Decision) retrying(failed *v1alpha2.FailedRevision) Decision {
	d.Retries, d.Candidates = failed, append(d.Candidates, failed.Revision)
	if d.State == StateCurrent {
		attempt := *d.Apply
		attempt.Inputs.Attempt = true
		d.Apply, d.Attempt = &attempt, cmp.Or(d.Attempt, failed)
	}
	return d
}
