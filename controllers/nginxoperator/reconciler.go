package nginxoperator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/bounds"
	"github.com/example/nginx-operator/internal/bridge"
	"github.com/example/nginx-operator/internal/denied"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/inputs"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/metrics"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/optional"
	"github.com/example/nginx-operator/internal/record"
	"github.com/example/nginx-operator/internal/reference"
	"github.com/example/nginx-operator/internal/requeue"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/internal/status"
	"github.com/example/nginx-operator/internal/wellknown"
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
	// Optional reports, by kind, whether HTTPRoutes, PodMonitors, and PrometheusRules are
	// installed.
	Optional map[string]*optional.API
	// Fleet admits objects to the rollout of a release.
	Fleet *fleet.Gate
	// Release has the defaults of the operator's release and its settings.
	operand.Release

	// records has the records of objects whose spec is not applied or rolls out.
	records record.Memory
	reports reports
}

// resolver returns the resolver of the objects that specs reference.
func (r *Reconciler) resolver() inputs.Resolver {
	return inputs.Resolver{Release: r.Release, ConfigMaps: r.ConfigMaps, Secrets: r.Secrets}
}

// store returns the store of the records. It reads no data if there is no Applier.
func (r *Reconciler) store(state live.State) record.Store {
	if r.Applier == nil {
		return record.Store{Live: state, Memory: &r.records}
	}
	return record.Store{Live: state, API: r.Applier.Reader, Memory: &r.records}
}

// rollouts returns the part that decides which declaration is applied.
func (r *Reconciler) rollouts(state live.State) rollout.Decider {
	return rollout.Decider{Inputs: r.resolver(), Live: state, Records: r.store(state), Fleet: r.Fleet}
}

// bridges returns the writer of bridges.
func (r *Reconciler) bridges(state live.State) bridge.Bridges {
	return bridge.Bridges{Live: state, Applier: r.Applier}
}

var _ reconcile.ObjectReconciler[*v1alpha2.NginxOperator] = &Reconciler{}

// Reconcile reads the live state, resolves the spec of an object, decides which declaration is
// applied, writes the children, evaluates the rollout, and writes the status. Failures are reported
// in the status. Failures that may pass without a change are also returned, so that they are retried
// with back-off.
func (r *Reconciler) Reconcile(ctx context.Context, object *v1alpha2.NginxOperator) (reconcile.Result, error) {
	if !object.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the children. They must not be recreated.
		r.forget(client.ObjectKeyFromObject(object))
		return reconcile.Result{}, nil
	}
	state, err := live.Read(ctx, r.Client, object)
	if why, unreadable := bounds.Unreadable(object); unreadable {
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
	r.Metrics.Started(object)

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
	var untilEvaluated, afterGood time.Duration
	if applyErr == nil || isWritten(brought.live.Deployment(), brought.Applied) {
		failed, untilEvaluated, err = rollouts.Evaluate(ctx, object, brought.Applied)
		applyErr = errors.Join(applyErr, err)
	}
	applyErr = errors.Join(applyErr, unreadable)
	outcome := status.Outcome{
		Resolution: brought.found, Decision: brought.decided, Written: brought.Or(status.WriteFailure(err, &object.Spec)), Failed: failed,
		Persistent: status.Persists(object.Status.Conditions, time.Now()), Unusable: unusable,
	}
	observed := brought.live.Observe(outcome.Children())
	updated, untilChanged := status.Compute(object, observed, outcome, time.Now())

	if status.IsNewGood(object.Status.LastGoodRevision, updated.LastGoodRevision, outcome) ||
		len(updated.FailedRevisions) < len(object.Status.FailedRevisions) {
		afterGood = requeue.Soon // the earlier records are deleted then, and a rollout slot may be free
	}
	place, err = rollouts.EvaluateForFleet(updated.LastGoodRevision, outcome.Decision, failed, outcome.Failure)
	if err != nil {
		return reconcile.Result{}, errors.Join(applyErr, err)
	}
	r.forgetRecords(object, observed, outcome.State, place)

	untilWritten, statusErr := r.writeStatus(ctx, object, updated)
	if apply.StartsOver(statusErr) {
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // an error would be logged
	}
	untilRetry, retryErr := retryOf(applyErr, &object.Spec)
	if outcome.Replaced {
		untilRetry, retryErr = 0, nil
	}
	again := requeue.Soonest(brought.again, untilEvaluated, outcome.UntilAttempt, untilChanged, untilWritten, untilRetry, afterGood)
	if again != 0 && again <= requeue.Soon && statusErr == nil {
		return reconcile.Result{RequeueAfter: again}, nil // the next reconcile must not wait for a back-off
	}
	return reconcile.Result{RequeueAfter: again}, errors.Join(retryErr, brought.retry, statusErr)
}

// isWritten reports whether a Deployment has the Pod template of a declaration. Then its rollout is
// evaluated, whatever became of the other children.
func isWritten(deployment *appsv1.Deployment, of *record.Rendering) bool {
	return deployment != nil && of != nil && of.Inputs.Record != "" && deployment.Labels[wellknown.LabelRecord] == of.Inputs.Record
}

// reconciled has the results of bring.
type reconciled struct {
	found   rollout.Resolution
	decided rollout.Decision
	writing
}

// bring resolves the spec, decides which declaration is applied, and applies it.
func (r *Reconciler) bring(ctx context.Context, object *v1alpha2.NginxOperator, state live.State) (reconciled, error) {
	declared, found, err := r.rollouts(state).Declare(ctx, object)
	if err != nil {
		return reconciled{found: found, writing: failedWriting(state, 0, err, &object.Spec)}, err
	}
	decided, err := r.rollouts(state).Decide(ctx, object, declared, found.Invalid)
	if err != nil {
		again, settleErr := r.bridges(state).Settle(ctx, object)
		err = errors.Join(err, settleErr)
		return reconciled{found, decided, failedWriting(state, again, err, &object.Spec)}, err
	}
	written, err := r.carryOut(ctx, object, state, decided)
	return reconciled{found.Mounted(decided.Secrets), decided, written}, err
}

// forget drops the remembered state of a deleted object.
func (r *Reconciler) forget(object types.NamespacedName) {
	r.Applier.Forget(object)
	r.Metrics.Forget(object)
	r.Fleet.Forget(object)
	r.records.Forget(object)
	r.reports.forget(object)
}

// forgetRecords drops the remembered records of an object whose spec is applied and whose rollout
// is complete.
func (r *Reconciler) forgetRecords(object *v1alpha2.NginxOperator, observed live.Observed, decided rollout.State, place *fleet.Place) {
	outside := place == nil || *place == fleet.Outside
	if decided == rollout.StateCurrent && outside && !health.RollsOut(observed.Deployment) {
		r.records.Forget(client.ObjectKeyFromObject(object))
	}
}

// writeStatus writes a changed status with one patch, and then reports its transitions. It returns
// the delay of a deferred write, or 0 if nothing is left to write. It returns a conflict if the
// status was computed from an old view of the object: the patch would remove a failed revision. An
// object that never changed has no old view with another result.
func (r *Reconciler) writeStatus(
	ctx context.Context, object *v1alpha2.NginxOperator, updated v1alpha2.NginxOperatorStatus,
) (time.Duration, error) {
	now := time.Now()
	if delay := status.WriteDelay(&object.Status, &updated, now); delay != 0 {
		return max(delay, 0), nil
	}
	if object.Generation > 1 {
		if err := r.Applier.Confirm(ctx, object); err != nil {
			return 0, err
		}
	}
	patch, err := statusPatch(object, operation{"add", "/status", updated})
	if err != nil {
		return 0, err
	}
	written := object.DeepCopy()
	written.Status = updated
	r.reports.wrote(written)
	err = r.Client.Status().Patch(ctx, written, client.RawPatch(types.JSONPatchType, patch), apply.FieldOwner)
	if apierrors.IsNotFound(err) && !denied.Is(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("failed to write status: %w", err)
	}
	r.reports.wrote(written) // the API server may prune or default a field
	for _, change := range status.Transitions(&object.Status, updated.Conditions) {
		if change.Reason == v1alpha2.ReasonNamespaceTerminating {
			continue // such a namespace accepts no Events
		}
		log.FromContext(ctx).Info("Condition changed", "reason", change.Reason, "message", change.Message)
		r.Recorder.Eventf(object, nil, change.EventType, change.Reason, "Reconcile", "%s", change.Message)
	}
	if meta.IsStatusConditionPresentAndEqual(updated.Conditions, v1alpha2.ConditionReady, metav1.ConditionTrue) {
		r.Metrics.Ready(object)
	}
	return 0, nil
}

// operation is an operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// statusPatch returns a JSON patch of the status that fails for a later object with the same name.
// A UID in a merge patch is not enough: the API server does not compare it in a write to the status
// of a custom resource.
func statusPatch(object *v1alpha2.NginxOperator, operations ...operation) ([]byte, error) {
	patch, err := json.Marshal(append([]operation{{"test", "/metadata/uid", object.UID}}, operations...))
	if err != nil {
		return nil, fmt.Errorf("failed to encode status: %w", err)
	}
	return patch, nil
}
