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
	"github.com/example/nginx-operator/internal/metrics"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/optional"
	"github.com/example/nginx-operator/internal/record"
	"github.com/example/nginx-operator/internal/reference"
	"github.com/example/nginx-operator/internal/requeue"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/internal/snapshot"
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

// reader returns the reader of the live state.
func (r *Reconciler) reader() snapshot.Reader { return snapshot.Reader{Client: r.Client} }

// store returns the store of the records. It reads no data if there is no Applier.
func (r *Reconciler) store() record.Store {
	out := record.Store{Cache: r.reader(), Memory: &r.records}
	if r.Applier != nil {
		out.API = r.Applier.Reader
	}
	return out
}

// rollouts returns the part that decides which declaration is applied.
func (r *Reconciler) rollouts() rollout.Decider {
	return rollout.Decider{Inputs: r.resolver(), Live: r.reader(), Records: r.store(), Fleet: r.Fleet}
}

// bridges returns the writer of bridges.
func (r *Reconciler) bridges() bridge.Bridges {
	return bridge.Bridges{Live: r.reader(), Applier: r.Applier}
}

var _ reconcile.ObjectReconciler[*v1alpha2.NginxOperator] = &Reconciler{}

// Reconcile resolves the spec of an object, decides which declaration is applied, writes the
// children, observes the result, evaluates the rollout, and writes the status. Failures are
// reported in the status. Failures that may pass without a change are also returned, so that they
// are retried with back-off.
func (r *Reconciler) Reconcile(ctx context.Context, object *v1alpha2.NginxOperator) (reconcile.Result, error) {
	if !object.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the children. They must not be recreated.
		r.forget(client.ObjectKeyFromObject(object))
		return reconcile.Result{}, nil
	}
	if why, unreadable := bounds.Unreadable(object); unreadable {
		r.reportToFleet(object, ptr.To(fleet.Outside))
		again, err := r.bridges().Settle(ctx, object)
		return reconcile.Result{RequeueAfter: again}, errors.Join(err, r.reportUnreadable(ctx, object, why))
	}
	r.Metrics.Started(object)

	result, applyErr := r.bring(ctx, object)
	place := result.Place
	defer func() { r.reportToFleet(object, place) }()
	if apply.StartsOver(applyErr) { // requeue without logging an error
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // an error would be logged
	}
	if result.hold {
		return reconcile.Result{RequeueAfter: result.again}, nil
	}

	state, err := r.reader().Observe(ctx, object, result.Children())
	if err != nil {
		return reconcile.Result{}, errors.Join(applyErr, err)
	}
	result, applyErr = r.evaluate(ctx, object, state, result, applyErr)
	updated, again := status.Compute(object, state, result.Outcome, time.Now())
	again = requeue.MinNonZero(result.UntilAttempt, requeue.MinNonZero(result.again, again))
	if status.IsNewGood(object.Status.LastGoodRevision, updated.LastGoodRevision, result.Outcome) {
		again = requeue.Soon // the earlier record is deleted then, and a rollout slot may be free
	}

	place, err = r.rollouts().EvaluateForFleet(
		ctx, object, state, updated.LastGoodRevision, result.Decision, result.Failed, result.Failure)
	if err != nil {
		return reconcile.Result{}, errors.Join(applyErr, err)
	}
	r.forgetRecords(object, state, result.State, place)

	delay, statusErr := r.writeStatus(ctx, object, updated)
	if apply.StartsOver(statusErr) {
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // an error would be logged
	}
	afterError, retryErr := retryOf(applyErr, &object.Spec)
	if result.Replaced {
		afterError, retryErr = 0, nil
	}
	again = requeue.MinNonZero(afterError, requeue.MinNonZero(delay, again))
	if again == requeue.Soon && statusErr == nil {
		return reconcile.Result{RequeueAfter: again}, nil // the next reconcile must not wait for a back-off
	}
	return reconcile.Result{RequeueAfter: again}, errors.Join(retryErr, result.retry, statusErr)
}

// evaluate returns a result with the evaluation of the rollout, unless the children could not be written, and
// with the missing objects that the Pods need. The error is the one to retry.
func (r *Reconciler) evaluate(
	ctx context.Context, object *v1alpha2.NginxOperator, state snapshot.Observed, result reconciled, applyErr error,
) (reconciled, error) {
	result.Persistent = status.Persists(object.Status.Conditions, time.Now())
	var unreadable error
	result.Unusable, unreadable = r.rollouts().Unusable(ctx, object, state.Deployment, result.State)
	if applyErr != nil && !isWritten(state.Deployment, result.Applied) {
		return result, errors.Join(applyErr, unreadable)
	}
	failed, again, err := r.rollouts().Evaluate(ctx, object, state, result.Applied)
	result.Failed, result.again = failed, requeue.MinNonZero(result.again, again)
	if applyErr == nil {
		result.Failure = status.WriteFailure(err, &object.Spec)
	}
	return result, errors.Join(applyErr, unreadable, err)
}

// isWritten reports whether a Deployment has the Pod template of a declaration. Then its rollout is
// evaluated, whatever became of the other children.
func isWritten(deployment *appsv1.Deployment, of *record.Rendering) bool {
	return deployment != nil && of != nil && of.Inputs.Record != "" && deployment.Labels[wellknown.LabelRecord] == of.Inputs.Record
}

// reconciled is an outcome with the time of the next reconcile.
type reconciled struct {
	status.Outcome
	next
}

// next is when a reconcile is repeated.
type next struct {
	// hold means that nothing may be changed or reported before the next reconcile.
	hold bool
	// retry is the error of a child that no Pod depends on, if its write is retried with back-off.
	retry error
	// again is the delay of the next reconcile, or 0 if only an event starts it.
	again time.Duration
}

// bring resolves the spec, decides which declaration is applied, and applies it.
func (r *Reconciler) bring(ctx context.Context, object *v1alpha2.NginxOperator) (reconciled, error) {
	declared, found, err := r.rollouts().Declare(ctx, object)
	if err != nil {
		failed := status.Written{Failure: status.WriteFailure(err, &object.Spec)}
		return reconciled{Outcome: status.Outcome{Resolution: found, Written: failed}}, err
	}
	decided, err := r.rollouts().Decide(ctx, object, declared, found.Invalid)
	if err != nil {
		again, settleErr := r.bridges().Settle(ctx, object)
		err = errors.Join(err, settleErr)
		failed := status.Written{Failure: status.WriteFailure(err, &object.Spec)}
		return reconciled{status.Outcome{Resolution: found, Decision: decided, Written: failed}, next{again: again}}, err
	}
	if secrets := decided.Secrets; secrets != nil { // the status reports the certificates that Pods mount
		found.Certificates, found.CertificatesHash = secrets.Certificates, secrets.CertificatesHash
	}
	written, err := r.carryOut(ctx, object, decided)
	return reconciled{status.Outcome{Resolution: found, Decision: decided, Written: written.Written}, written.next}, err
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
func (r *Reconciler) forgetRecords(object *v1alpha2.NginxOperator, state snapshot.Observed, decided rollout.State, place *fleet.Place) {
	outside := place == nil || *place == fleet.Outside
	if decided == rollout.StateCurrent && outside && !health.RollsOut(state.Deployment) {
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
