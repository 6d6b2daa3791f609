package nginxoperator

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/endpointslice"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/metrics"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/requeue"
	"github.com/example/nginx-operator/internal/resolve"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/internal/status"
	"github.com/example/nginx-operator/internal/wellknown"
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
	// Missing has the reason for each optional kind that is not served.
	Missing map[string]string
	// Fleet admits objects to the fleet rollout.
	Fleet *fleet.Gate
	// Release has the defaults of the operator's release and its settings.
	operand.Release
}

// rollouts returns the part that decides which declaration is applied.
func (r *Reconciler) rollouts(state live.State) rollout.Decider {
	return rollout.Decider{
		Resolver: resolve.Resolver{Release: r.Release, ConfigMaps: r.ConfigMaps, Secrets: r.Secrets},
		Live:     state, Store: revision.Store{Live: state, Applier: r.Applier}, Fleet: r.Fleet, Missing: r.Missing,
	}
}

// bridges returns the writer of bridges.
func (r *Reconciler) bridges(state live.State) endpointslice.Bridges {
	return endpointslice.Bridges{Live: state, Applier: r.Applier}
}

// results are those of the steps of a reconcile so far. Each step takes and returns them.
type results struct {
	status.Outcome
	// live is the live state after the writes.
	live live.State
	// hold means that nothing may be changed or reported before the next reconcile.
	hold bool
	// retry is the error of a child that no Pod depends on, if its write is retried with back-off.
	retry error
	// again is the delay of the next reconcile, or 0 if only an event starts it.
	again time.Duration
}

// Reconcile decides which declaration of an object is applied, writes the children, evaluates the
// rollout, and reports failures in the status. Failures that may pass without a change are also
// returned, so that they are retried with back-off.
func (r *Reconciler) Reconcile(ctx context.Context, object *v1alpha2.NginxOperator) (reconcile.Result, error) {
	if !object.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the children. They must not be recreated.
		r.forget(client.ObjectKeyFromObject(object))
		return reconcile.Result{}, nil
	}

	state, err := live.Read(ctx, r.Client, object, r.Missing)
	if why, unreadable := codec.Unreadable(object); unreadable {
		r.reportToFleet(object, fleet.Outside)
		var again time.Duration
		if err == nil {
			again, err = r.bridges(state).Settle(ctx, object)
		}
		return reconcile.Result{RequeueAfter: again}, errors.Join(err, r.reportUnreadable(ctx, object, why))
	}

	if err != nil {
		r.reportToFleet(object, fleet.Unknown)
		return reconcile.Result{}, err
	}

	r.rememberChange(object)

	done, applyErr := r.bring(ctx, object, state)
	place := done.Place
	defer func() { r.reportToFleet(object, place) }()
	if apply.StartsOver(applyErr) { // requeue without logging an error
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // an error would be logged
	}
	if done.hold {
		return reconcile.Result{RequeueAfter: done.again}, nil
	}

	done, untilEvaluated, applyErr := r.evaluate(ctx, object, done, applyErr)
	updated, untilChanged := status.Compute(object, done.live.Observe(done.Children()), done.Outcome, time.Now())
	place, err = r.rollouts(done.live).EvaluateForFleet(updated.LastGoodRevision, done.Decision, done.Failed, done.Failure)
	if err != nil {
		return reconcile.Result{}, errors.Join(applyErr, err)
	}

	untilWritten, statusErr := r.writeStatus(ctx, object, updated)
	if apply.StartsOver(statusErr) {
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // an error would be logged
	}

	untilRetry, retryErr := retryOf(applyErr, &object.Spec)
	if done.Replaced {
		untilRetry, retryErr = 0, nil
	}

	again := requeue.Soonest(done.again, untilEvaluated, done.UntilAttempt, untilChanged, untilWritten, untilRetry,
		lookAgain(&object.Status, &updated, done.Outcome))
	if again != 0 && again <= requeue.Soon && statusErr == nil {
		return reconcile.Result{RequeueAfter: again}, nil // the next reconcile must not wait for a back-off
	}

	return reconcile.Result{RequeueAfter: again}, errors.Join(retryErr, done.retry, statusErr)
}

// bring resolves the spec, decides which declaration is applied, and applies it.
func (r *Reconciler) bring(ctx context.Context, object *v1alpha2.NginxOperator, state live.State) (results, error) {
	rollouts := r.rollouts(state)
	declared, resolution, err := rollouts.Declare(ctx, object)
	done := results{live: state, Outcome: status.Outcome{Resolution: resolution}}
	if err != nil {
		return done, err
	}

	recognized, err := rollouts.Recognize(ctx, object, declared)
	if err == nil && recognized != object {
		if _, err = r.writeStatus(ctx, object, recognized.Status); err == nil {
			done.hold, done.again = true, requeue.Soon
		}
		return done, err
	}

	if err == nil && declared != nil {
		err = rollouts.Mark(object, declared)
	}
	if err == nil {
		done.Decision, err = rollouts.Decide(ctx, object, declared, done.Invalid)
	}

	if err != nil {
		var settleErr error
		done.again, settleErr = r.bridges(state).Settle(ctx, object)
		return done, errors.Join(err, settleErr)
	}

	if done.Store != nil {
		isStored, err := r.storeInEffect(ctx, object, state, *done.Store, done.Declared)
		if isStored {
			done.hold, done.again = true, requeue.Soon
		}
		if isStored || err != nil {
			return done, err
		}
	}

	if done.Secrets != nil {
		done.Certificates, done.CertificatesHash = done.Secrets.Certificates, done.Secrets.CertificatesHash
	}

	return r.carryOut(ctx, object, done)
}

// evaluate evaluates the rollout after the writes. It returns the delay of the next evaluation, and
// the errors of the writes and of the evaluation.
func (r *Reconciler) evaluate(
	ctx context.Context, object *v1alpha2.NginxOperator, done results, applyErr error,
) (_ results, again time.Duration, err error) {
	rollouts := r.rollouts(done.live)
	done.Failure = status.WriteFailure(applyErr, &object.Spec)
	var pods *revision.Declaration
	if done.Applied != nil {
		pods = done.Applied.Pods
	}
	if applyErr == nil || revision.HasPods(object, done.live.Deployment(), pods) {
		done.Failed, again, err = rollouts.Evaluate(ctx, object, pods)
		done.Failure = cmp.Or(done.Failure, status.WriteFailure(err, &object.Spec))
	}

	// The resolution of a spec that is applied has found the unusable objects already.
	var unreadable error
	hasEarlierPods := done.State == rollout.StateUnusable || done.State == rollout.StateRolledBack
	if deployment := done.live.Deployment(); deployment != nil && hasEarlierPods {
		done.Unusable, unreadable = rollouts.Resolver.Unusable(ctx, object, &deployment.Spec.Template)
	}

	return done, again, errors.Join(applyErr, err, unreadable)
}

// lookAgain returns the delay of a reconcile that follows a new status, or 0.
func lookAgain(before, after *v1alpha2.NginxOperatorStatus, outcome status.Outcome) time.Duration {
	isSlotFree := status.IsNewGood(before.LastGoodRevision, after.LastGoodRevision, outcome) ||
		len(after.FailedRevisions) < len(before.FailedRevisions)
	isStoredStale := before.StoredRevision != nil && after.StoredRevision == nil
	if isSlotFree || isStoredStale {
		return requeue.Soon
	}
	return 0
}

// reportToFleet reports the place of an object to the gate.
func (r *Reconciler) reportToFleet(object *v1alpha2.NginxOperator, place fleet.Place) {
	key := client.ObjectKeyFromObject(object)
	if place == fleet.Outside && defaults.Replicas(&object.Spec) == 0 {
		r.Fleet.Forget(key) // objects without Pods must not raise the number of instances that roll at a time
		return
	}
	r.Fleet.Report(key, place, wellknown.IsCanary(object.Labels))
}

// forget drops the remembered state of a deleted object.
func (r *Reconciler) forget(object types.NamespacedName) {
	r.Applier.Forget(object)
	r.Fleet.Forget(object)
}
