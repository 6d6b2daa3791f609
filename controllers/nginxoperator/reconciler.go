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

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/metrics"
	"github.com/example/nginx-operator/internal/reference"
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
	// ConfigMaps and Secrets follow what objects name.
	ConfigMaps, Secrets *reference.Tracker
	// Image is the container image of the operands that declare none.
	Image string
	// IPv6 makes the operands listen on IPv6 as well.
	IPv6 bool
}

var _ reconcile.ObjectReconciler[*v1alpha2.NginxOperator] = &Reconciler{}

// Reconcile is one pass over one object: inputs, desired, check, apply, observe, status. It remembers nothing between
// passes but what it concluded from ConfigMaps and Secrets that have not changed. A failure of the user's or the cluster's
// making ends in the status; what may pass by itself is also returned, so that it is tried again with back-off.
func (r *Reconciler) Reconcile(ctx context.Context, object *v1alpha2.NginxOperator) (reconcile.Result, error) {
	if !object.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the children; making them anew would be in its way.
		r.Metrics.Forget(object)
		return reconcile.Result{}, nil
	}
	r.Metrics.Started(object)
	result, applyErr := r.bring(ctx, object)
	if apierrors.IsConflict(applyErr) {
		return reconcile.Result{RequeueAfter: staleRetry}, nil
	}
	state, err := r.observe(ctx, object)
	if err != nil {
		return reconcile.Result{}, errors.Join(applyErr, err)
	}
	status := computeStatus(object, state, result)
	delay, statusErr := r.writeStatus(ctx, object, status)
	if apply.IsNotOurs(applyErr) != nil || inTerminatingNamespace(applyErr) {
		return reconcile.Result{RequeueAfter: conflictRetry}, statusErr
	}
	return reconcile.Result{RequeueAfter: delay}, errors.Join(applyErr, statusErr)
}

// outcome is what a pass came to before it looked at the operands.
type outcome struct {
	// image is the container image that the object declares.
	image string
	// children are those that the object declares, nil where that is not known.
	children []client.Object
	// blockers hold all changes back.
	blockers []failure
	// waiting are the changes that spec.paused holds back, in words.
	waiting []string
	// failure is that of the writes, nil where they succeeded.
	failure *failure
}

// held tells whether changes are held back: the operands are what was applied before.
func (o outcome) held() bool { return len(o.blockers) > 0 || len(o.waiting) > 0 }

// bring brings the children to what the object declares, unless something holds that back.
func (r *Reconciler) bring(ctx context.Context, object *v1alpha2.NginxOperator) (outcome, error) {
	in, blockers, err := r.resolve(ctx, object)
	result := outcome{image: in.image, blockers: blockers, failure: applyFailure(err)}
	if err != nil || len(blockers) > 0 {
		return result, err
	}
	if in.deployment, err = r.liveDeployment(ctx, object); err == nil {
		result.children = desired(object, in)
		if object.Spec.Paused {
			result.waiting, err = r.pending(ctx, object, result.children)
		} else {
			err = r.apply(ctx, object, in, result.children)
		}
	}
	result.failure = applyFailure(err)
	return result, err
}

// apply writes the children that differ and removes those that are no longer declared.
func (r *Reconciler) apply(ctx context.Context, object *v1alpha2.NginxOperator, in inputs, children []client.Object) error {
	if err := r.Applier.Apply(ctx, object, r.fill(object, in), children...); err != nil {
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

// pending returns in words what apply would write.
func (r *Reconciler) pending(ctx context.Context, object *v1alpha2.NginxOperator, children []client.Object) ([]string, error) {
	differ, err := r.Applier.Pending(ctx, object, children...)
	if err != nil {
		return nil, err
	}
	unwanted, err := r.unwanted(ctx, object, children)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, child := range differ {
		out = append(out, fmt.Sprintf("%s %q", child.GetObjectKind().GroupVersionKind().Kind, child.GetName()))
	}
	for _, child := range unwanted {
		gvk, err := r.Client.GroupVersionKindFor(child)
		if err != nil {
			return nil, fmt.Errorf("failed to find kind of %s: %w", child.GetName(), err)
		}
		out = append(out, fmt.Sprintf("the deletion of %s %q", gvk.Kind, child.GetName()))
	}
	return out, nil
}

// writeStatus writes a status that differs with one patch, then tells of the transitions in it. It returns how long to
// wait before the pass is repeated because the write was put off, 0 where nothing is left to write.
func (r *Reconciler) writeStatus(ctx context.Context, object *v1alpha2.NginxOperator, status v1alpha2.NginxOperatorStatus) (time.Duration, error) {
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
