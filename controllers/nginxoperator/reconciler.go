package nginxoperator

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/bridge"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/inputs"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/metrics"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/requeue"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/internal/status"
	"github.com/example/nginx-operator/pkg/apply"
	"github.com/example/nginx-operator/pkg/reference"
)

// Reconciler reconciles NginxOperators. All fields are required.
type Reconciler struct {
	// Client reads from the cache, with read-your-writes consistency, and writes the status.
	Client client.Client
	// Applier writes the children.
	Applier *apply.Applier
	// Recorder sends the Events.
	Recorder events.EventRecorder
	// Metrics counts reconciles and measures the time until Ready.
	Metrics *metrics.Metrics
	// ConfigMaps and Secrets watch the objects that specs reference.
	ConfigMaps, Secrets *reference.Tracker
	// Missing has the reason for each optional kind that is not served. It does not change after
	// SetupWithManager.
	Missing map[string]string
	// Fleet admits objects to the rollout of a release.
	Fleet *fleet.Gate
	// Release has the defaults of the operator's release and its settings.
	operand.Release
}

// resolver returns the resolver of the objects that specs reference.
func (r *Reconciler) resolver() inputs.Resolver {
	return inputs.Resolver{Release: r.Release, ConfigMaps: r.ConfigMaps, Secrets: r.Secrets}
}

// rollouts returns the part that decides which declaration is applied.
func (r *Reconciler) rollouts(state live.State) rollout.Decider {
	return rollout.Decider{
		Resolver: r.resolver(), Live: state, Store: revision.Store{Live: state, Applier: r.Applier}, Fleet: r.Fleet, Missing: r.Missing,
	}
}

// bridges returns the writer of bridges.
func (r *Reconciler) bridges(state live.State) bridge.Bridges {
	return bridge.Bridges{Live: state, Applier: r.Applier}
}

var _ reconcile.ObjectReconciler[*v1alpha2.NginxOperator] = &Reconciler{}

// Reconcile reads the live state, resolves the spec of an object, decides which declaration is
// applied, writes the children, evaluates the rollout, and writes the status. Failures are reported
// in the status. Failures that may pass without a change are also returned, so that they are
// retried with back-off.
func (r *Reconciler) Reconcile(ctx context.Context, object *v1alpha2.NginxOperator) (reconcile.Result, error) {
	if !object.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the children. They must not be recreated.
		r.forget(client.ObjectKeyFromObject(object))
		return reconcile.Result{}, nil
	}
	state, err := live.Read(ctx, r.Client, object, r.Missing)
	if why, unreadable := codec.Unreadable(object); unreadable {
		r.reportToFleet(object, ptr.To(fleet.Outside))
		var again time.Duration
		if err == nil {
			again, err = r.bridges(state).Settle(ctx, object)
		}
		return reconcile.Result{RequeueAfter: again}, errors.Join(err, r.reportUnreadable(ctx, object, why))
	}
	if err != nil {
		r.reportToFleet(object, nil)
		return reconcile.Result{}, err
	}
	r.rememberChange(object)

	brought, applyErr := r.bring(ctx, object, state)
	place := brought.decided.Place
	defer func() { r.reportToFleet(object, place) }()
	if apply.StartsOver(applyErr) { // requeue without logging an error
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // an error would be logged
	}
	if brought.hold {
		return reconcile.Result{RequeueAfter: brought.again}, nil
	}

	rollouts := r.rollouts(brought.live)
	unusable, unreadable := rollouts.Unusable(ctx, object, brought.decided.State)
	var failed *v1alpha2.FailedRevision
	var untilEvaluated time.Duration
	var pods *revision.Declaration
	if brought.Applied != nil {
		pods = brought.Applied.Pods
	}
	if applyErr == nil || revision.HasPods(object, brought.live.Deployment(), pods) {
		failed, untilEvaluated, err = rollouts.Evaluate(ctx, object, pods)
		applyErr = errors.Join(applyErr, err)
	}
	applyErr = errors.Join(applyErr, unreadable)
	outcome := status.Outcome{
		Resolution: brought.found, Decision: brought.decided, Written: brought.Or(status.WriteFailure(err, &object.Spec)), Failed: failed,
		Persistent: status.Persists(object.Status.Conditions, time.Now()), Unusable: unusable,
	}
	observed := brought.live.Observe(outcome.Children())
	updated, untilChanged := status.Compute(object, observed, outcome, time.Now())

	place, err = rollouts.EvaluateForFleet(updated.LastGoodRevision, outcome.Decision, failed, outcome.Failure)
	if err != nil {
		return reconcile.Result{}, errors.Join(applyErr, err)
	}
	untilWritten, statusErr := r.writeStatus(ctx, object, updated)
	if apply.StartsOver(statusErr) {
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // an error would be logged
	}
	if statusErr == nil && updated.StoredRevision == nil {
		statusErr = r.deleteStored(ctx, object, brought.live)
	}
	untilRetry, retryErr := retryOf(applyErr, &object.Spec)
	if outcome.Replaced {
		untilRetry, retryErr = 0, nil
	}
	again := requeue.Soonest(brought.again, untilEvaluated, outcome.UntilAttempt, untilChanged, untilWritten, untilRetry,
		lookAgain(object, updated, outcome))
	if again != 0 && again <= requeue.Soon && statusErr == nil {
		return reconcile.Result{RequeueAfter: again}, nil // the next reconcile must not wait for a back-off
	}
	return reconcile.Result{RequeueAfter: again}, errors.Join(retryErr, brought.retry, statusErr)
}

// lookAgain returns the delay of a reconcile that follows a new status, or 0.
func lookAgain(object *v1alpha2.NginxOperator, updated v1alpha2.NginxOperatorStatus, outcome status.Outcome) time.Duration {
	before := &object.Status
	switch {
	case status.IsNewGood(before.LastGoodRevision, updated.LastGoodRevision, outcome),
		len(updated.FailedRevisions) < len(before.FailedRevisions):
		return requeue.Soon // a rollout slot may be free
	case before.StoredRevision != nil && updated.StoredRevision == nil:
		return requeue.UntilObserved // the ConfigMaps of the stored children can be deleted
	}
	return 0
}

// reconciled has the results of bring.
type reconciled struct {
	found   rollout.Resolution
	decided rollout.Decision
	writing
}

// bring resolves the spec, decides which declaration is applied, and applies it.
func (r *Reconciler) bring(ctx context.Context, object *v1alpha2.NginxOperator, state live.State) (reconciled, error) {
	rollouts := r.rollouts(state)
	declared, found, err := rollouts.Declare(ctx, object)
	if err != nil {
		return reconciled{found: found, writing: failedWriting(state, 0, err, &object.Spec)}, err
	}
	recognized, err := rollouts.Recognize(ctx, object, declared)
	if err == nil && recognized != object {
		_, err = r.writeStatus(ctx, object, recognized.Status)
		return r.startsAgain(object, state, found, rollout.Decision{}, err)
	}
	if err == nil && declared != nil {
		err = rollouts.Mark(object, declared)
	}
	var decided rollout.Decision
	if err == nil {
		decided, err = rollouts.Decide(ctx, object, declared, found.Invalid)
	}
	if err != nil {
		again, settleErr := r.bridges(state).Settle(ctx, object)
		err = errors.Join(err, settleErr)
		return reconciled{found, decided, failedWriting(state, again, err, &object.Spec)}, err
	}
	if decided.Store != nil {
		if isStored, err := r.storeInEffect(ctx, object, state, *decided.Store); isStored || err != nil {
			return r.startsAgain(object, state, found, decided, err)
		}
	}
	written, err := r.carryOut(ctx, object, state, decided)
	return reconciled{found.Mounted(decided.Secrets), decided, written}, err
}

// startsAgain returns the result after a write that the next reconcile builds on, or its error.
func (r *Reconciler) startsAgain(
	object *v1alpha2.NginxOperator, state live.State, found rollout.Resolution, decided rollout.Decision, err error,
) (reconciled, error) {
	failure := status.WriteFailure(err, &object.Spec)
	written := writing{live: state, hold: err == nil, again: requeue.Soon, Written: status.Written{Failure: failure}}
	return reconciled{found, decided, written}, err
}

// forget drops the remembered state of a deleted object.
func (r *Reconciler) forget(object types.NamespacedName) {
	r.Applier.Forget(object)
	r.Fleet.Forget(object)
}
