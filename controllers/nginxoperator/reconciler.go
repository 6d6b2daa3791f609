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
	"github.com/example/nginx-operator/internal/bridge"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/inputs"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/metrics"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/requeue"
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
	// Fleet admits objects to the rollout of a release.
	Fleet *fleet.Gate
	// Release has the defaults of the operator's release and its settings.
	operand.Release
}

// rollouts returns the part that decides which declaration is applied.
func (r *Reconciler) rollouts(state live.State) rollout.Decider {
	return rollout.Decider{
		Inputs: inputs.Resolver{Release: r.Release, ConfigMaps: r.ConfigMaps, Secrets: r.Secrets},
		Live:   state, Store: revision.Store{Live: state, Applier: r.Applier}, Fleet: r.Fleet, Missing: r.Missing,
	}
}

// bridges returns the writer of bridges.
func (r *Reconciler) bridges(state live.State) bridge.Bridges {
	return bridge.Bridges{Live: state, Applier: r.Applier}
}

// progress has the results of the steps of a reconcile.
type progress struct {
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

	p := &progress{live: state}
	applyErr := r.bring(ctx, object, p)
	place := p.Place
	defer func() { r.reportToFleet(object, place) }()
	if apply.StartsOver(applyErr) { // requeue without logging an error
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // an error would be logged
	}
	if p.hold {
		return reconcile.Result{RequeueAfter: p.again}, nil
	}

	untilEvaluated, applyErr := r.evaluate(ctx, object, p, applyErr)
	updated, untilChanged := status.Compute(object, p.live.Observe(p.Children()), p.Outcome, time.Now())
	place, err = r.rollouts(p.live).EvaluateForFleet(updated.LastGoodRevision, p.Decision, p.Failed, p.Failure)
	if err != nil {
		return reconcile.Result{}, errors.Join(applyErr, err)
	}

	untilWritten, statusErr := r.writeStatus(ctx, object, updated)
	if apply.StartsOver(statusErr) {
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // an error would be logged
	}
	untilRetry, retryErr := retryOf(applyErr, &object.Spec)
	if p.Replaced {
		untilRetry, retryErr = 0, nil
	}
	again := requeue.Soonest(p.again, untilEvaluated, p.UntilAttempt, untilChanged, untilWritten, untilRetry,
		lookAgain(&object.Status, &updated, p.Outcome))
	if again != 0 && again <= requeue.Soon && statusErr == nil {
		return reconcile.Result{RequeueAfter: again}, nil // the next reconcile must not wait for a back-off
	}
	return reconcile.Result{RequeueAfter: again}, errors.Join(retryErr, p.retry, statusErr)
}

// bring resolves the spec, decides which declaration is applied, and applies it.
func (r *Reconciler) bring(ctx context.Context, object *v1alpha2.NginxOperator, p *progress) error {
	rollouts := r.rollouts(p.live)
	declared, resolution, err := rollouts.Declare(ctx, object)
	p.Resolution = resolution
	if err != nil {
		return err
	}

	recognized, err := rollouts.Recognize(ctx, object, declared)
	if err == nil && recognized != object {
		if _, err = r.writeStatus(ctx, object, recognized.Status); err == nil {
			p.hold, p.again = true, requeue.Soon
		}
		return err
	}
	if err == nil && declared != nil {
		err = rollouts.Mark(object, declared)
	}
	if err == nil {
		p.Decision, err = rollouts.Decide(ctx, object, declared, p.Invalid)
	}
	if err != nil {
		var settleErr error
		p.again, settleErr = r.bridges(p.live).Settle(ctx, object)
		return errors.Join(err, settleErr)
	}

	if p.Store != nil {
		isStored, err := r.storeInEffect(ctx, object, p.live, *p.Store)
		if isStored {
			p.hold, p.again = true, requeue.Soon
		}
		if isStored || err != nil {
			return err
		}
	}
	if p.Secrets != nil {
		p.Certificates, p.CertificatesHash = p.Secrets.Certificates, p.Secrets.CertificatesHash
	}
	return r.carryOut(ctx, object, p)
}

// evaluate evaluates the rollout after the writes. It returns the delay of the next evaluation, and
// the errors of the writes and of the evaluation.
func (r *Reconciler) evaluate(
	ctx context.Context, object *v1alpha2.NginxOperator, p *progress, applyErr error,
) (again time.Duration, err error) {
	rollouts := r.rollouts(p.live)
	p.Failure = status.WriteFailure(applyErr, &object.Spec)
	var pods *revision.Declaration
	if p.Applied != nil {
		pods = p.Applied.Pods
	}
	if applyErr == nil || revision.HasPods(object, p.live.Deployment(), pods) {
		p.Failed, again, err = rollouts.Evaluate(ctx, object, pods)
		p.Failure = cmp.Or(p.Failure, status.WriteFailure(err, &object.Spec))
	}
	// The resolution of a spec that is applied has found the unusable objects already.
	var unreadable error
	hasEarlierPods := p.State == rollout.StateBlocked || p.State == rollout.StateRolledBack
	if deployment := p.live.Deployment(); deployment != nil && hasEarlierPods {
		p.Unusable, unreadable = rollouts.Inputs.Unusable(ctx, object, &deployment.Spec.Template)
	}
	return again, errors.Join(applyErr, err, unreadable)
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
