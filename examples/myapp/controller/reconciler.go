package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
	"github.com/example/nginx-operator/internal/apply"
)

const (
	// conflictRetry is how often a pass is repeated that waits for somebody else to free the Deployment's name: what is in
	// the way is not watched.
	conflictRetry = 30 * time.Second
	// staleRetry is when a pass is repeated that was made from a state which had changed meanwhile.
	staleRetry = 50 * time.Millisecond
)

// Reconciler brings MyApps to what they declare. All fields are required.
type Reconciler struct {
	// Client reads from the cache and writes the status.
	Client client.Client
	// Applier writes the Deployment.
	Applier *apply.Applier
	// Recorder sends the Events.
	Recorder events.EventRecorder
}

var _ reconcile.ObjectReconciler[*v1alpha1.MyApp] = &Reconciler{}

// Reconcile is one pass over one object: apply, observe, status. It remembers nothing between passes. A name that is taken
// ends in the status; what may pass by itself is also returned, so that it is tried again with back-off.
func (r *Reconciler) Reconcile(ctx context.Context, app *v1alpha1.MyApp) (reconcile.Result, error) {
	if !app.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the Deployment; making it anew would be in its way.
		return reconcile.Result{}, nil
	}
	applyErr := r.Applier.Apply(ctx, app, nil, desiredDeployment(app))
	if apierrors.IsConflict(applyErr) {
		return reconcile.Result{RequeueAfter: staleRetry}, nil
	}
	deployment, err := r.observe(ctx, app)
	if err != nil {
		return reconcile.Result{}, errors.Join(applyErr, err)
	}
	statusErr := r.writeStatus(ctx, app, computeStatus(app, deployment, applyErr))
	if apply.IsNotOurs(applyErr) != nil {
		return reconcile.Result{RequeueAfter: conflictRetry}, statusErr
	}
	return reconcile.Result{}, errors.Join(applyErr, statusErr)
}

// observe returns the Deployment of a MyApp, nil where there is none that belongs to it.
func (r *Reconciler) observe(ctx context.Context, app *v1alpha1.MyApp) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(app), deployment)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("failed to read Deployment %q: %w", app.Name, err)
	case !metav1.IsControlledBy(deployment, app):
		return nil, nil
	}
	return deployment, nil
}

// writeStatus writes a status that differs with one patch, then tells of a change of Ready.
func (r *Reconciler) writeStatus(ctx context.Context, app *v1alpha1.MyApp, status v1alpha1.MyAppStatus) error {
	if equality.Semantic.DeepEqual(app.Status, status) {
		return nil
	}
	patched := app.DeepCopy()
	patched.Status = status
	err := r.Client.Status().Patch(ctx, patched, client.MergeFrom(app), apply.FieldOwner)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("failed to write status: %w", err)
	}
	before := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ConditionReady)
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if before == nil || before.Reason != ready.Reason {
		r.Recorder.Eventf(app, nil, eventType(ready.Reason), ready.Reason, "Reconcile", "%s", ready.Message)
	}
	return nil
}

func eventType(reason string) string {
	if reason == v1alpha1.ReasonNameConflict || reason == v1alpha1.ReasonAPIError {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
