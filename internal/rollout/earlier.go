package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/change"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
)

// rolledBack returns the decision for a spec that has failed. Without good Pods, the running ones
// stay; without a Deployment there are none, so the spec is applied.
func (r Decider) rolledBack(
	ctx context.Context, object *v1alpha2.NginxOperator, declared *revision.Declaration, failed, forgotten *v1alpha2.FailedRevision,
) (Decision, error) {
	out := Decision{
		State: StateRolledBack, Declared: declared, Forgotten: forgotten,
		Blockers: []failure.Failure{{Reason: v1alpha2.ReasonRolledBack, Message: RolledBackMessage(failed)}},
	}

	if next := failed.NextAttemptTime; next != nil {
		out.UntilAttempt = max(time.Until(next.Time), 0)
	}

	found, err := r.Store.Load(ctx, object, declared)
	if err == nil && found == nil && object.Status.StoredRevision != nil {
		out.Store, err = r.storeAgain(ctx, object, declared)
	}
	if err != nil || out.Store != nil {
		return out, err
	}

	out.Apply, err = r.goodPods(ctx, object, declared, declared.Change, found)
	switch {
	case err != nil:
		return out, err
	case out.Apply == nil && r.Live.Deployment() == nil:
		return Decision{Declared: declared, Apply: declared, Entrance: declared}, nil
	case out.Apply == nil:
		out.Blockers[0].Message = failed.Message + "; the good Pods are not stored, so the operator writes nothing"
		return out, nil
	}

	switch stored := object.Status.StoredRevision; {
	case r.isProven(object, declared) && !operand.IsMarkedAsBefore(r.Live.Deployment()):
		out.Entrance = declared
	case found != nil && stored.HasEntrance:
		out.Good, out.Entrance = found, found
	}

	return r.withSecrets(ctx, object, out)
}

func (r Decider) goodPods(
	ctx context.Context, object *v1alpha2.NginxOperator, declared *revision.Declaration, failed change.ID, stored *revision.Declaration,
) (*revision.Declaration, error) {
	live, _ := r.changes(object, declared)
	switch {
	case stored != nil && !stored.Change.SamePods(failed):
		return stored, nil
	case !live.SamePods(failed):
		return r.Store.Last(ctx, object, nil)
	}
	return r.Store.Good(ctx, object)
}

// whileUnusable is for a spec that cannot be used. A failed change stays failed.
func (r Decider) whileUnusable(ctx context.Context, object *v1alpha2.NginxOperator, blockers []failure.Failure) (Decision, error) {
	out := Decision{State: StateUnusable, Blockers: blockers}
	if object.Spec.Paused {
		return out, nil
	}

	found, err := r.Store.Load(ctx, object, nil)
	if err != nil {
		return out, err
	}

	last, good := r.changes(object, nil)
	deployment := r.Live.Deployment()
	if deployment != nil && !operand.IsMarkedAsBefore(deployment) && r.Store.Applier != nil &&
		(found == nil || !object.Status.StoredRevision.HasEntrance) {
		out.Store = &StoreRequest{HasEntrance: true}
		if found != nil && !last.SamePods(good) {
			out.Store.Pods = found
		}
		return out, nil
	}

	failed, err := r.failedLast(ctx, object)
	if err != nil {
		return out, err
	}

	failedPods := change.ID("")
	if failed != nil {
		failedPods = change.ID(failed.Change)
	}

	switch {
	case last.SamePods(failedPods):
		out.Apply, err = r.goodPods(ctx, object, nil, last, found)
	case found != nil && (deployment == nil || found.Change.SamePods(last)):
		out.Apply = found
	default:
		out.Apply, err = r.Store.Last(ctx, object, nil)
	}

	if err != nil || out.Apply == nil {
		return out, err
	}

	out.Good, out.Entrance = found, found
	if failed != nil && !out.Apply.Change.SamePods(failedPods) {
		out.State = StateRolledBack
		out.Blockers = append(slices.Clip(blockers), failure.Failure{Reason: v1alpha2.ReasonRolledBack, Message: failed.Message})
	}

	return r.withSecrets(ctx, object, out)
}

// failedLast returns the revision that failed last, unless it is mended.
func (r Decider) failedLast(ctx context.Context, object *v1alpha2.NginxOperator) (*v1alpha2.FailedRevision, error) {
	all := object.Status.FailedRevisions
	if len(all) == 0 || !defaults.RolloutOf(&object.Spec).AutomaticRollback {
		return nil, nil
	}

	failed := &all[len(all)-1]
	if mended, err := r.Resolver.IsMended(ctx, object, failed); err != nil || mended {
		return nil, err
	}
	return failed, nil
}

// whileWaiting returns the decision for an object that waits for a rollout slot. retries is the
// failed revision of an earlier release that it then rolls out again, or nil.
func (r Decider) whileWaiting(
	ctx context.Context, object *v1alpha2.NginxOperator, declared *revision.Declaration, retries *v1alpha2.FailedRevision,
) (Decision, error) {
	out := Decision{State: StateWaiting, Declared: declared}
	if retries != nil {
		latest := cmp.Or(FailedOf(&object.Status, declared.Change), retries)
		message := fmt.Sprintf("%s; attempt %d waits for a rollout slot", latest.Message, nextAttempt(latest))
		out.State, out.Blockers = StateRolledBack, []failure.Failure{{Reason: v1alpha2.ReasonRolledBack, Message: message}}
	}

	var err error
	if out.Apply, err = r.Store.Last(ctx, object, declared); err != nil || out.Apply == nil {
		return out, err
	}

	if out.State == StateWaiting {
		out.WaitsFor = differences(declared, out.Apply.Image(), out.Apply.Exporter(), out.Apply.RequestMetrics(), out.Apply.ConfigHash())
		if failed := FailedOf(&object.Status, out.Apply.Change); failed != nil && !attempts(object, failed, time.Now()) {
			out.Blockers = []failure.Failure{{Reason: v1alpha2.ReasonRolledBack, Message: RolledBackMessage(failed)}}
		}
	}

	if out, err = r.withEntrance(ctx, object, out); err != nil || out.Store != nil {
		return out, err
	}

	return r.withSecrets(ctx, object, out)
}

// withSecrets completes a decision to apply earlier Pods with the current content of the Secrets
// that they mount, so that they get renewed certificates. If a Secret cannot be used, no Pod could
// start, so the Pods stay as they are.
func (r Decider) withSecrets(ctx context.Context, object *v1alpha2.NginxOperator, d Decision) (Decision, error) {
	deployment := d.Apply.Deployment()
	if deployment == nil {
		return d, errors.New("failed to apply the earlier children: the Deployment is missing")
	}

	in, blockers, err := r.Resolver.SecretsOf(ctx, object, &deployment.Spec.Template)
	if err != nil {
		return d, err
	}

	d.Secrets = &in
	if len(blockers) == 0 {
		apply := *d.Apply
		apply.Children = slices.Clone(apply.Children)
		for i, child := range apply.Children {
			if child == deployment {
				apply.Children[i] = operand.WithSecrets(deployment, in)
			}
		}

		d.Apply = &apply
	}

	return d, nil
}
