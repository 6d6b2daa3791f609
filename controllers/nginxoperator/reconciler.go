package nginxoperator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

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
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/metrics"
	"github.com/example/nginx-operator/internal/optional"
	"github.com/example/nginx-operator/internal/reference"
)

// Reconciler brings NginxOperators to what they declare. All fields are required.
type Reconciler struct {
	// Client reads from the cache, with read-your-writes consistency, and writes the status.
	Client client.Client
	// Applier writes the children.
	Applier *apply.Applier
	// Recorder sends the Events.
	Recorder events.EventRecorder
	// Metrics counts.
	Metrics *metrics.Metrics
	// ConfigMaps and Secrets follow what objects name.
	ConfigMaps, Secrets *reference.Tracker
	// Optional tells, by kind, whether the cluster has HTTPRoutes, PodMonitors and PrometheusRules.
	Optional map[string]*optional.API
	// Fleet lets objects begin for which the release has something else.
	Fleet *fleet.Gate
	// Image is the container image of the operands that declare none.
	Image string
	// ExporterImage is that of exporters of operands that declare none.
	ExporterImage string
	// IPv6 makes the operands listen on IPv6 as well.
	IPv6 bool

	// revisions has a remembered for each blocked object, by its name.
	revisions sync.Map
}

var _ reconcile.ObjectReconciler[*v1alpha2.NginxOperator] = &Reconciler{}

// Reconcile reconciles one object: inputs, desired, check, apply, observe, status. It remembers nothing between
// reconciles but what it concluded from ConfigMaps and Secrets that have not changed. A failure of the user's or the cluster's
// making ends in the status; what may pass by itself is also returned, so that it is tried again with back-off.
func (r *Reconciler) Reconcile(ctx context.Context, object *v1alpha2.NginxOperator) (reconcile.Result, error) {
	if !object.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the children; recreating them would be in its way.
		r.forget(client.ObjectKeyFromObject(object))
		return reconcile.Result{}, nil
	}
	if why, unreadable := bounds.Unreadable(object); unreadable {
		r.reportToFleet(object, ptr.To(fleet.Outside))
		again, err := r.settle(ctx, object)
		return reconcile.Result{RequeueAfter: again}, errors.Join(err, r.reportUnreadable(ctx, object, why))
	}
	r.Metrics.Started(object)
	result, applyErr := r.reconcileChildren(ctx, object)
	defer func() { r.reportToFleet(object, result.fleet) }()
	if apierrors.IsConflict(applyErr) || meta.IsNoMatchError(applyErr) {
		// The reconcile was made from a state that had changed meanwhile, be it that a kind is not served any more. It is repeated, with the
		// back-off of a failure, but it is none.
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // an error would be logged as one
	}
	if result.hold {
		return reconcile.Result{RequeueAfter: result.again}, nil
	}
	state, err := r.observe(ctx, object, result.children)
	if err != nil {
		return reconcile.Result{}, errors.Join(applyErr, err)
	}
	result.lasting = lasts(object.Status.Conditions, time.Now())
	if applyErr == nil {
		if applyErr = r.judge(ctx, object, state, &result); applyErr != nil {
			result.failure = applyFailure(applyErr, &object.Spec)
		}
	}
	status, again := computeStatus(object, state, result, time.Now())
	result.again = sooner(result.again, again)
	if isNewGood(object.Status.LastGoodRevision, status.LastGoodRevision, result) {
		result.again = soon // the record of the one before goes, and its turn may have come
	}
	if err := r.judgeForFleet(ctx, object, state, &status, &result); err != nil {
		return reconcile.Result{}, errors.Join(applyErr, err)
	}
	delay, statusErr := r.writeStatus(ctx, object, status)
	if apply.IsNotOurs(applyErr) != nil || inTerminatingNamespace(applyErr) {
		return reconcile.Result{RequeueAfter: conflictRetry}, statusErr
	}
	again = sooner(delay, result.again)
	if result.failure != nil && result.failure.reason == v1alpha2.ReasonInvalidConfiguration {
		return reconcile.Result{RequeueAfter: sooner(again, verdictRetry)}, statusErr
	}
	return reconcile.Result{RequeueAfter: again}, errors.Join(applyErr, statusErr)
}

// outcome is what a reconcile came to before it looked at the operands.
type outcome struct {
	// applied is the declaration whose children are applied: that of the object or, while it is blocked, an earlier one. Nil
	// where none is.
	applied *declaration
	// candidates are the names of the revisions that the object asks for, nil where that is not known.
	candidates []string
	// children are those of the declaration that is applied.
	children []client.Object
	// certificates are those that the object names and that can be used, where that could be resolved.
	certificates []usable
	resolved     bool
	// failed is the revision that is applied, where its rollout has failed just now and is to be taken back.
	failed *v1alpha2.FailedRevision
	// blockers block all changes.
	blockers []failure
	// fleet is where the object is in the rollout of a release, nil where that is not known.
	fleet *fleet.Place
	// waitsFor is what the release has for the object when its turn comes, in words, "" where it does not wait.
	waitsFor string
	// waiting are the changes that spec.paused blocks, in words.
	waiting []string
	// hold: nothing may be changed, or told of, before the reconcile is made again.
	hold bool
	// again is when the reconcile is to be made again though nothing may have changed, 0 for never.
	again time.Duration
	// lasting: what the API server refuses it has refused for a while.
	lasting bool
	// failure is that of the writes, nil where they succeeded.
	failure *failure
}

// forget drops what is remembered of an object that is deleted.
func (r *Reconciler) forget(object types.NamespacedName) {
	r.Applier.Forget(object)
	r.Metrics.Forget(object)
	r.Fleet.Forget(object)
	r.revisions.Delete(object)
}

// reconcileChildren brings the children to what the object declares. While that is blocked, waits or was taken back, they are made of the
// last declaration that was applied and has not failed, with the replicas that the object has now.
func (r *Reconciler) reconcileChildren(ctx context.Context, object *v1alpha2.NginxOperator) (outcome, error) {
	declared, result, err := r.declared(ctx, object)
	if err != nil {
		result.failure = applyFailure(err, &object.Spec)
		return result, err
	}
	blocked := len(result.blockers) > 0
	if blocked {
		result.fleet = ptr.To(fleet.Outside)
		result.applied, err = r.lastApplied(ctx, object)
	} else {
		err = r.inTurn(ctx, declared, &result)
	}
	if err != nil || result.applied == nil || blocked && object.Spec.Paused {
		result.applied = nil
		again, settleErr := r.settle(ctx, object)
		err = errors.Join(err, settleErr)
		result.again, result.failure = again, applyFailure(err, &object.Spec)
		return result, err
	}
	if result.children, err = r.childrenOf(ctx, object, result.applied); err == nil {
		err = r.change(ctx, result.applied, &result)
	}
	result.failure = applyFailure(err, &result.applied.object.Spec)
	return result, err
}

// change applies the children, or says what it would apply where the object is paused.
func (r *Reconciler) change(ctx context.Context, of *declaration, result *outcome) (err error) {
	object, in := of.object, of.in
	if object.Spec.Paused {
		if _, result.again, err = r.bridge(ctx, object, in.running, nil); err == nil {
			result.waiting, err = r.pending(ctx, object, in, result.children)
		}
		return err
	}
	result.hold, result.again, err = r.bridge(ctx, object, in.running, servedPorts(&object.Spec, in.running))
	if err != nil || result.hold {
		return err
	}
	again, err := r.apply(ctx, of, result.children)
	result.again = sooner(result.again, again)
	return err
}

// apply writes the children that differ, then the record of their declaration, and removes those that are no longer declared. It
// returns after what time it has to be done again, 0 where that is not known.
func (r *Reconciler) apply(ctx context.Context, of *declaration, children []client.Object) (time.Duration, error) {
	children = append(slices.Clip(children), of.revision)
	again, err := r.Applier.Apply(ctx, of.object, of.fill(), children...)
	if err != nil {
		return 0, err
	}
	stale, err := r.staleChildren(ctx, of.object, children)
	if err != nil {
		return 0, err
	}
	for _, child := range stale {
		if err := r.Applier.Delete(ctx, child); err != nil {
			return 0, err
		}
	}
	return again, nil
}

// pending returns in words what apply would write.
func (r *Reconciler) pending(ctx context.Context, object *v1alpha2.NginxOperator, in inputs, children []client.Object) ([]string, error) {
	differ, err := r.Applier.Pending(ctx, object, children...)
	if err != nil {
		return nil, err
	}
	stale, err := r.staleChildren(ctx, object, children)
	if err != nil {
		return nil, err
	}
	var out []string
	if object.Spec.Autoscaling != nil || *desiredDeployment(object, in).Spec.Replicas != defaults.Replicas(&object.Spec) {
		// An autoscaler may go to and fro between one replica and more; that is no change that waits.
		differ, stale = slices.DeleteFunc(differ, isBudget), slices.DeleteFunc(stale, isBudget)
	}
	for _, child := range differ {
		out = append(out, fmt.Sprintf("%s %q", child.GetObjectKind().GroupVersionKind().Kind, child.GetName()))
	}
	for _, child := range stale {
		gvk, err := r.Client.GroupVersionKindFor(child)
		if err != nil {
			return nil, fmt.Errorf("failed to find kind of %s: %w", child.GetName(), err)
		}
		out = append(out, fmt.Sprintf("the deletion of %s %q", gvk.Kind, child.GetName()))
	}
	return out, nil
}

// writeStatus writes a status that differs with one patch, then tells of the transitions in it. It returns how long to
// wait before the reconcile is repeated because the write was deferred, 0 where nothing is left to write.
func (r *Reconciler) writeStatus(
	ctx context.Context, object *v1alpha2.NginxOperator, status v1alpha2.NginxOperatorStatus,
) (time.Duration, error) {
	now := time.Now()
	if delay := writeDelay(&object.Status, &status, now); delay != 0 {
		return max(delay, 0), nil
	}
	before := object.Status.Conditions
	patch, err := statusPatch(object, operation{"add", "/status", status})
	if err != nil {
		return 0, err
	}
	err = r.Client.Status().Patch(ctx, object.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), apply.FieldOwner)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("failed to write status: %w", err)
	}
	for _, change := range transitions(before, status.Conditions) {
		if change.reason == v1alpha2.ReasonNamespaceTerminating {
			continue // such a namespace takes no Events
		}
		log.FromContext(ctx).Info("Condition changed", "reason", change.reason, "message", change.message)
		r.Recorder.Eventf(object, nil, change.eventType, change.reason, "Reconcile", "%s", change.message)
	}
	if meta.IsStatusConditionPresentAndEqual(status.Conditions, v1alpha2.ConditionReady, metav1.ConditionTrue) {
		r.Metrics.Ready(object)
	}
	return 0, nil
}

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// statusPatch returns the patch that does something to the status of this object and of no later one of its name. A UID in a merge
// patch would not do: the API server does not compare it in a write to a custom resource's status.
func statusPatch(object *v1alpha2.NginxOperator, operations ...operation) ([]byte, error) {
	patch, err := json.Marshal(append([]operation{{"test", "/metadata/uid", object.UID}}, operations...))
	if err != nil {
		return nil, fmt.Errorf("failed to encode status: %w", err)
	}
	return patch, nil
}
