// Package rollout decides which declaration of an NginxOperator is applied: the spec, the last
// declaration, or the children in effect. It also evaluates rollouts.
package rollout

import (
	"cmp"
	"context"
	"time"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/change"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/resolve"
	"github.com/example/nginx-operator/internal/revision"
)

// Decider decides which declaration of an object is applied, and evaluates its rollout.
type Decider struct {
	Resolver resolve.Resolver
	Live     live.State
	Store    revision.Store
	// Fleet admits objects to the fleet rollout. If it is nil, no object needs a slot.
	Fleet *fleet.Gate
	// Missing has the reason for each optional kind that is not installed.
	Missing map[string]string
}

// State is the reason for the choice of the applied declaration. spec.paused is not a state: it
// stops the writes of every state.
type State int

const (
	// StateCurrent means that the spec is applied.
	StateCurrent State = iota
	// StateUnusable means that the spec cannot be used. The Pods keep the last declaration.
	StateUnusable
	// StateWaiting means that a new release renders another Pod template of the same spec, and that
	// the object waits for a rollout slot. The Pods keep the last declaration.
	StateWaiting
	// StateRolledBack means that the rollout of the declared Pod template failed, whatever the spec
	// has become since. The good Pods are applied.
	StateRolledBack
)

// Decision is the choice of the applied declaration, with its reasons.
type Decision struct {
	// State is the reason for the choice.
	State State
	// Declared is the declaration of the spec, or nil if the spec cannot be used.
	Declared *revision.Declaration
	// Apply is the declaration of the Pods, or nil if nothing is written.
	Apply *revision.Declaration
	// Entrance is the declaration of the entrance, or nil if it is not known, and stays.
	Entrance *revision.Declaration
	// Good is the declaration in effect. It is nil if the user's part of the spec's Pods is good.
	Good *revision.Declaration
	// Store is what has to be stored before anything else is written, or nil.
	Store *StoreRequest
	// Secrets has the current content of the Secrets that Apply mounts, or nil in StateCurrent.
	Secrets *operand.Inputs
	// Blockers are the reasons why the spec is not applied. StateWaiting has none, unless the
	// declaration that stays has failed.
	Blockers []failure.Failure
	// WaitsFor describes the changes by the release in StateWaiting. In other states it is "".
	WaitsFor string
	// Place is the place of the object in the fleet rollout.
	Place fleet.Place
	// Attempt is the failed revision that is rolled out again in StateCurrent, or nil.
	Attempt *v1alpha2.FailedRevision
	// Retries is the failed revision of an earlier release that the object rolls out again, or nil.
	Retries *v1alpha2.FailedRevision
	// Forgotten is a failed revision that the status has lost, or nil.
	Forgotten *v1alpha2.FailedRevision
	// UntilAttempt is the time until the next attempt, or 0 if none is planned.
	UntilAttempt time.Duration
}

// StoreRequest is a request to store what is in effect.
type StoreRequest struct {
	// Pods are stored already, or nil for those of the live Deployment.
	Pods *revision.Declaration
	// HasEntrance means that the entrance of the spec is not in effect.
	HasEntrance bool
}

// IsRolledBack reports whether a revision that the object requests has failed.
func (d Decision) IsRolledBack() bool {
	return d.State == StateRolledBack || d.State == StateWaiting && len(d.Blockers) > 0
}

// Decide returns the decision for an object, and requests a rollout slot if it needs one. The
// declaration is that of the object, or nil if its spec cannot be used.
func (r Decider) Decide(
	ctx context.Context, object *v1alpha2.NginxOperator, declared *revision.Declaration, blockers []failure.Failure,
) (Decision, error) {
	if declared == nil {
		decision, err := r.whileUnusable(ctx, object, blockers)
		decision.Place = fleet.Outside
		return decision, err
	}

	place, retries, err := r.slotOf(ctx, object, declared)
	if err != nil {
		return Decision{Place: place}, err
	}

	var decision Decision
	if place.Waits() {
		decision, err = r.whileWaiting(ctx, object, declared, retries)
	} else {
		decision, err = r.decide(ctx, object, declared)
	}

	decision.Place, decision.Retries = place, retries
	if decision.State == StateCurrent {
		decision.Attempt = cmp.Or(decision.Attempt, retries)
	}

	return decision, err
}

// decide is Decide for an object that does not wait for a slot.
func (r Decider) decide(ctx context.Context, object *v1alpha2.NginxOperator, declared *revision.Declaration) (Decision, error) {
	forgotten, err := r.forgotten(object, declared)
	if err != nil {
		return Decision{}, err
	}

	failed := cmp.Or(FailedOf(&object.Status, declared.Change), forgotten)
	if !defaults.RolloutOf(&object.Spec).AutomaticRollback {
		failed = nil
	}

	if failed != nil {
		mended, err := r.Resolver.IsMended(ctx, object, failed)
		if err != nil {
			return Decision{}, err
		}

		mended = mended || failed.SecretsHash != "" && failed.SecretsHash != secretsHash(declared)
		if isDue := attempts(object, failed, time.Now()) && r.canRollBack(object); !mended && !isDue {
			return r.rolledBack(ctx, object, declared, failed, forgotten)
		}
	}

	return r.withEntrance(ctx, object, Decision{Declared: declared, Apply: declared, Attempt: failed})
}

func (r Decider) canRollBack(object *v1alpha2.NginxOperator) bool {
	return object.Status.StoredRevision != nil || operand.IsMarkedAsBefore(r.Live.Deployment())
}

// changes returns the IDs of the Pods that were declared last and of the good Pods, or "" if they
// are not known. Another client may have brought earlier Pods back, so the status has those that
// were declared last, unless the operator ended after their write.
func (r Decider) changes(object *v1alpha2.NginxOperator, declared *revision.Declaration) (last, good change.ID) {
	if proven := object.Status.LastGoodRevision; proven != nil {
		good = change.ID(proven.Change)
	}

	last = revision.ChangeOf(object, r.Live.Deployment())
	before, isOfSpec := object.Status.DeclaredRevision, declared != nil && declared.Change.SamePods(last)
	if before != nil && last != "" && !isOfSpec {
		last = change.ID(before.Change)
	}
	return last, good
}

// isProven reports whether the entrance of a spec applies: the user's part of its Pods is that of
// the good Pods, or nothing has served yet. Releases before 0.8.0 wrote the entrance together with
// the Pods. Nothing of a paused object is written, so all of its changes wait together.
func (r Decider) isProven(object *v1alpha2.NginxOperator, declared *revision.Declaration) bool {
	live, good := r.changes(object, declared)
	return object.Status.LastGoodRevision == nil || object.Spec.Paused || declared.Change.SameUser(good) ||
		operand.IsMarkedAsBefore(r.Live.Deployment()) && declared.Change.SamePods(live)
}

func (r Decider) withEntrance(ctx context.Context, object *v1alpha2.NginxOperator, d Decision) (Decision, error) {
	live, good := r.changes(object, d.Declared)
	stored, exists := object.Status.StoredRevision, r.Live.Deployment() != nil
	replaces := exists && live.SamePods(good) && !d.Apply.Change.SamePods(live)
	if r.isProven(object, d.Declared) {
		d.Entrance = d.Declared
		var err error
		switch {
		case replaces && stored == nil && !object.Spec.Paused:
			d.Store = &StoreRequest{}
		case stored != nil && !live.SamePods(good):
			var isStored bool
			if isStored, err = r.Live.HasRevision(stored.Name); err == nil && !isStored {
				d.Store, err = r.storeAgain(ctx, object, d.Declared)
			}
		}
		return d, err
	}

	found, err := r.Store.Load(ctx, object, d.Declared)
	if err != nil {
		return d, err
	}

	switch {
	case replaces && (found == nil || !stored.HasEntrance):
		d.Store = &StoreRequest{HasEntrance: true}
	case found != nil && !stored.HasEntrance:
		d.Store = &StoreRequest{Pods: found, HasEntrance: true}
	case found == nil && stored != nil:
		d.Store, err = r.storeAgain(ctx, object, d.Declared)
	default:
		d.Good, d.Entrance = found, found
	}

	return d, err
}

// storeAgain requests to store what another client has deleted or changed, if it can.
func (r Decider) storeAgain(
	ctx context.Context, object *v1alpha2.NginxOperator, declared *revision.Declaration,
) (*StoreRequest, error) {
	if object.Spec.Paused {
		return nil, nil
	}

	request := &StoreRequest{HasEntrance: object.Status.StoredRevision.HasEntrance}
	if last, good := r.changes(object, declared); last.SamePods(good) {
		return request, nil
	}

	pods, err := r.Store.Good(ctx, object)
	if pods == nil || err != nil {
		return nil, err
	}

	request.Pods = pods
	return request, nil
}
