// Package rollout decides which declaration of an NginxOperator is applied: the current spec, the
// last applied one, or the last good one. It evaluates rollouts, and places objects in the rollout
// of a release.
package rollout

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/inputs"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/record"
	"github.com/example/nginx-operator/internal/requeue"
)

// Decider decides which declaration of an object is applied, and evaluates its rollout.
type Decider struct {
	// Inputs reads the objects that specs reference.
	Inputs inputs.Resolver
	// Live is the live state of the object, and Records reads its records.
	Live    live.State
	Records record.Store
	// Fleet admits objects to the rollout of a release.
	Fleet *fleet.Gate
}

// State is the reason for the choice of the applied declaration. spec.paused is not a state: it
// stops the writes of every state.
type State int

const (
	// StateCurrent means that the spec is applied.
	StateCurrent State = iota
	// StateBlocked means that the spec, or a referenced object, cannot be used. The last applied
	// declaration stays.
	StateBlocked
	// StateWaiting means that a new release renders another Pod template of the same spec, and that
	// the object waits for a rollout slot. The last applied declaration stays.
	StateWaiting
	// StateRolledBack means that the rollout of the declared Pod template failed, whatever the spec has
	// become since. The last good declaration is applied.
	StateRolledBack
)

// facts determine a state.
type facts struct {
	// blocked means that the spec, or a referenced object, cannot be used.
	blocked bool
	// waits means that the object waits for a rollout slot.
	waits bool
	// failed means that the rollout of the spec has failed, and that nothing has mended it since.
	failed bool
	// automaticRollback is spec.rollout.automaticRollback.
	automaticRollback bool
}

// state returns the state for the facts. A spec that cannot be used neither waits nor fails, and
// one that waits has no Pods that fail.
func (f facts) state() State {
	switch {
	case f.blocked:
		return StateBlocked
	case f.waits:
		return StateWaiting
	case f.failed && f.automaticRollback:
		return StateRolledBack
	}
	return StateCurrent
}

// Decision is the choice of the applied declaration, with its reasons.
type Decision struct {
	// State is the reason for the choice.
	State State
	// Apply is the declaration to apply, or nil if there is none.
	Apply *record.Declaration
	// Unproven means that the user's part of the Pods of Apply is not that of good Pods.
	Unproven bool
	// Entrance is the declaration of the entrance, or nil if it is that of Apply.
	Entrance *record.Declaration
	// Good is the declaration of the good Pods with the entrance that is in effect, or nil if there is
	// none. It becomes the last good revision.
	Good *record.Declaration
	// Secrets are the inputs of Apply with the current content of its Secrets, or nil in StateCurrent.
	// The Pods may have an earlier content.
	Secrets *operand.Inputs
	// Blockers are the reasons why the spec is not applied. StateWaiting has none, unless the
	// declaration that stays has failed.
	Blockers []failure.Failure
	// Candidates are the names of the revisions that the object requests, or nil if they are not
	// known.
	Candidates []string
	// WaitsFor describes the changes by the release in StateWaiting. In other states it is "".
	WaitsFor string
	// Place is the place of the object in the fleet rollout, or nil if it is not known.
	Place *fleet.Place
	// Attempt is the failed revision that is rolled out again in StateCurrent, or nil.
	Attempt *v1alpha2.FailedRevision
	// Retries is the failed revision of an earlier release that the object rolls out again, or nil.
	Retries *v1alpha2.FailedRevision
	// Forgotten is a failed revision that the status has lost, or nil.
	Forgotten *v1alpha2.FailedRevision
	// UntilAttempt is the time until the next attempt, or 0 if none is planned.
	UntilAttempt time.Duration
}

// IsRolledBack reports whether a revision that the object requests has failed.
func (d Decision) IsRolledBack() bool {
	return d.State == StateRolledBack || d.State == StateWaiting && len(d.Blockers) > 0
}

// Decide returns the decision for an object, and requests a rollout slot if it needs one. The
// declaration is that of the object, or nil if the object is blocked. The error is a
// record.Unusable if a record is needed and cannot be used.
func (r Decider) Decide(
	ctx context.Context, object *v1alpha2.NginxOperator, declared *record.Declaration, blockers []failure.Failure,
) (Decision, error) {
	known, err := r.goodOf(ctx, object, declared)
	if err != nil {
		return Decision{}, err
	}
	if declared == nil {
		out, err := r.decide(ctx, object, nil, blockers, known)
		out.Place = ptr.To(fleet.Outside)
		return r.complete(object, out, known), err
	}

	found, err := r.slotOf(ctx, declared)
	if err != nil {
		return Decision{Place: found.place}, err
	}
	if found.waits != nil {
		waiting := Decision{
			State: facts{waits: true}.state(), Candidates: []string{declared.Revision.Name}, WaitsFor: found.changes, Place: found.place,
		}
		if failed := found.retries; failed != nil {
			waiting.State, waiting.Candidates = StateRolledBack, append(waiting.Candidates, failed.Revision)
			latest := cmp.Or(record.Failed(&object.Status, declared.Revision.Name), failed)
			waiting.Blockers = []failure.Failure{{Reason: v1alpha2.ReasonRolledBack, Message: waitingAttemptMessage(latest)}}
		}
		out, err := r.stayWith(ctx, object, found.waits, waiting)
		return r.complete(object, out, known), err
	}

	out, err := r.decide(ctx, object, declared, nil, known)
	out.Place = found.place
	if err == nil && found.retries != nil {
		out = out.retrying(found.retries)
	}
	return r.complete(object, out, known), err
}

// DecideWithoutFleet is Decide for an object that needs no rollout slot. It is for previews.
func (r Decider) DecideWithoutFleet(
	ctx context.Context, object *v1alpha2.NginxOperator, declared *record.Declaration, blockers []failure.Failure,
) (Decision, error) {
	known, err := r.goodOf(ctx, object, declared)
	if err != nil {
		return Decision{}, err
	}
	return r.decide(ctx, object, declared, blockers, known)
}

// decide is Decide without the fleet and the entrance.
func (r Decider) decide(
	ctx context.Context, object *v1alpha2.NginxOperator, declared *record.Declaration, blockers []failure.Failure, known good,
) (Decision, error) {
	found := facts{blocked: declared == nil, automaticRollback: defaults.RolloutOf(&object.Spec).AutomaticRollback}
	var failed, forgotten *v1alpha2.FailedRevision
	if declared != nil {
		var err error
		if forgotten, err = r.forgotten(object, declared); err != nil {
			return Decision{}, err
		}
		failed = cmp.Or(record.Failed(&object.Status, declared.Revision.Name), forgotten)
		mended, err := r.Inputs.IsMended(ctx, object, failed)
		if err != nil {
			return Decision{}, err
		}
		retries, err := r.mayAttempt(ctx, object, failed)
		if err != nil {
			return Decision{}, err
		}
		found.failed = failed != nil && !mended && !retries
	}

	state := found.state()
	if state == StateCurrent {
		out := Decision{Apply: declared, Candidates: []string{declared.Revision.Name}}
		if found.automaticRollback {
			out.Attempt = failed
		}
		return out, nil
	}
	last, err := r.Records.LastApplied(ctx, object)
	if last != nil && known.isSame && last.Revision.Name == object.Status.LastGoodRevision.Revision {
		last = known.declaration
	}
	switch {
	case err != nil:
		return Decision{State: state, Blockers: blockers}, err
	case state == StateBlocked && last == nil:
		return Decision{State: state, Blockers: blockers}, nil
	case state == StateBlocked:
		return r.whileBlocked(ctx, object, last, blockers)
	case last == nil:
		return r.withoutRecord(declared, failed), nil
	}
	return r.stayWith(ctx, object, last, Decision{
		State: state, Candidates: []string{declared.Revision.Name}, UntilAttempt: untilAttempt(failed, time.Now()), Forgotten: forgotten,
		Blockers: []failure.Failure{{
			Reason:  v1alpha2.ReasonRolledBack,
			Message: RolledBackMessage(failed),
		}},
	})
}

// whileBlocked returns the decision for an object whose spec cannot be used. A change that failed before
// stays failed.
func (r Decider) whileBlocked(
	ctx context.Context, object *v1alpha2.NginxOperator, last *record.Declaration, blockers []failure.Failure,
) (Decision, error) {
	out, err := r.stayWith(ctx, object, last, Decision{State: StateBlocked, Blockers: blockers})
	out.Candidates = nil // the object may ask for any revision once nothing blocks it
	failed := object.Status.FailedRevisions
	if err != nil || len(failed) == 0 || object.Spec.Paused || !defaults.RolloutOf(&object.Spec).AutomaticRollback {
		return out, err
	}
	latest := &failed[len(failed)-1]
	mended, err := r.Inputs.IsMended(ctx, object, latest)
	if err == nil && !mended && latest.Revision != out.Apply.Revision.Name {
		out.State = StateRolledBack
		out.Blockers = append(slices.Clip(blockers), failure.Failure{Reason: v1alpha2.ReasonRolledBack, Message: latest.Message})
	}
	return out, err
}

// mayAttempt reports whether a failed revision, or nil, is rolled out again. Without a record, another
// failure could not be rolled back.
func (r Decider) mayAttempt(ctx context.Context, object *v1alpha2.NginxOperator, failed *v1alpha2.FailedRevision) (bool, error) {
	if failed == nil || !attempts(object, failed, time.Now()) {
		return false, nil
	}
	last, err := r.Records.LastApplied(ctx, object)
	return last != nil, err
}

// withoutRecord returns the decision for an object whose spec has failed, and whose other records are
// lost. The running Pods stay. Without a Deployment there are none, so the spec is applied.
func (r Decider) withoutRecord(declared *record.Declaration, failed *v1alpha2.FailedRevision) Decision {
	candidates := []string{declared.Revision.Name}
	if r.Live.Deployment() == nil {
		return Decision{Apply: declared, Candidates: candidates}
	}
	return Decision{State: StateRolledBack, Candidates: candidates, Blockers: []failure.Failure{{
		Reason:  v1alpha2.ReasonRolledBack,
		Message: failed.Message + "; the record of the last good revision does not exist, so nothing is written",
	}}}
}

// stayWith completes a decision to apply the last declaration with the current content of its
// Secrets. If the rollout of that content has failed, the last declaration is applied unchanged.
func (r Decider) stayWith(
	ctx context.Context, object *v1alpha2.NginxOperator, last *record.Declaration, as Decision,
) (Decision, error) {
	renewed, current, err := r.withSecrets(ctx, last)
	if err != nil {
		return as, err
	}
	as.Apply, as.Secrets = renewed, &current
	as.Candidates = append(slices.Clip(as.Candidates), renewed.Revision.Name)
	switch failed := record.Failed(&last.Object.Status, renewed.Revision.Name); {
	case failed == nil:
	case attempts(object, failed, time.Now()):
		as.Attempt = failed
	default:
		as.Apply, as.UntilAttempt = last, requeue.Soonest(as.UntilAttempt, untilAttempt(failed, time.Now()))
		if as.State == StateWaiting {
			as.Blockers = []failure.Failure{{Reason: v1alpha2.ReasonRolledBack, Message: RolledBackMessage(failed)}}
		}
	}
	return as, nil
}
