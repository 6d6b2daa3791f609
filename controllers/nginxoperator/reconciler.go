package nginxoperator

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/metrics"
)

// conflictRetry is how often a pass is repeated that waits for somebody else: an object with the name of a child, which
// is not watched, or the end of a namespace.
const conflictRetry = 30 * time.Second

// staleRetry is when a pass is repeated that was made from a state which had changed meanwhile.
const staleRetry = 50 * time.Millisecond

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
	// Image is the container image of the operands.
	Image string
	// IPv6 makes the operands listen on IPv6 as well.
	IPv6 bool
}

var _ reconcile.ObjectReconciler[*v1alpha1.NginxOperator] = &Reconciler{}

// Reconcile is one pass over one object: inputs, desired, apply, observe, status. It remembers nothing between passes.
// A failure of the user's or the cluster's making ends in the status; what may pass by itself is also returned, so
// that it is tried again with back-off.
func (r *Reconciler) Reconcile(ctx context.Context, object *v1alpha1.NginxOperator) (reconcile.Result, error) {
	if !object.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the children; making them anew would be in its way.
		r.Metrics.Forget(object)
		return reconcile.Result{}, nil
	}
	r.Metrics.Started(object)
	live, err := r.liveDeployment(ctx, object)
	if err != nil {
		return reconcile.Result{}, err
	}
	in := inputs{image: r.Image, ipv6: r.IPv6, deployment: live}
	applyErr := r.apply(ctx, object, in)
	if apierrors.IsConflict(applyErr) {
		return reconcile.Result{RequeueAfter: staleRetry}, nil
	}
	state, err := r.observe(ctx, object)
	if err != nil {
		return reconcile.Result{}, errors.Join(applyErr, err)
	}
	status := computeStatus(object, in, state, applyFailure(applyErr))
	delay, statusErr := r.writeStatus(ctx, object, status)
	if apply.IsNotOurs(applyErr) != nil || inTerminatingNamespace(applyErr) {
		return reconcile.Result{RequeueAfter: conflictRetry}, statusErr
	}
	return reconcile.Result{RequeueAfter: delay}, errors.Join(applyErr, statusErr)
}

// apply writes the children that differ and removes those that are no longer declared.
func (r *Reconciler) apply(ctx context.Context, object *v1alpha1.NginxOperator, in inputs) error {
	children, err := desired(object, in)
	if err != nil {
		return err
	}
	if err := r.Applier.Apply(ctx, object, children...); err != nil {
		return err
	}
	unwanted, err := r.unwanted(ctx, object, children)
	if err != nil {
		return err
	}
	for _, child := range unwanted {
		if err := r.Applier.Delete(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

// writeStatus writes a status that differs with one patch, then tells of the transitions in it. It returns how long to
// wait before the pass is repeated because the write was put off, 0 where nothing is left to write.
func (r *Reconciler) writeStatus(ctx context.Context, object *v1alpha1.NginxOperator, status v1alpha1.NginxOperatorStatus) (time.Duration, error) {
	now := time.Now()
	if delay := writeDelay(&object.Status, &status, now); delay != 0 {
		return max(delay, 0), nil
	}
	before := object.Status.Conditions
	patched := object.DeepCopy()
	patched.Status = status
	err := r.Client.Status().Patch(ctx, patched, client.MergeFrom(object), apply.FieldOwner)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("failed to write status: %w", err)
	}
	for _, change := range transitions(before, status.Conditions) {
		if change.reason == v1alpha1.ReasonNamespaceTerminating {
			continue // such a namespace takes no Events
		}
		log.FromContext(ctx).Info("Condition changed", "reason", change.reason, "message", change.message)
		r.Recorder.Eventf(object, nil, change.eventType, change.reason, "Reconcile", "%s", change.message)
	}
	if meta.IsStatusConditionPresentAndEqual(status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue) {
		r.Metrics.Ready(object)
	}
	return 0, nil
}
