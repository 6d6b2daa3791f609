// Package controller reconciles MyApps. It is the smallest complete form of the "owned workload"
// pattern: create or patch a Deployment, set its owner, and copy its state into the status.
package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
	"github.com/example/nginx-operator/pkg/manager"
)

// OwnerReferencesPermissionEnforcement (OpenShift) requires the permission to update finalizers.
//
// +kubebuilder:rbac:groups=example.com,resources=myapps,verbs=list;watch
// +kubebuilder:rbac:groups=example.com,resources=myapps/status,verbs=patch
// +kubebuilder:rbac:groups=example.com,resources=myapps/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// name is the value of app.kubernetes.io/managed-by on the Deployments, and the field manager.
	name = "myapp-operator"
	// container is the name of the container, and the value of the label app.
	container = "myapp"
	// conflictRetry is the interval of retries after a name conflict. The conflicting Deployment is
	// not watched.
	conflictRetry = 30 * time.Second
)

// Reconciler reconciles MyApps.
type Reconciler struct {
	// Client reads from the cache. API reads from the API server.
	Client   client.Client
	API      client.Reader
	Recorder events.EventRecorder
}

// Setup adds the controller to a manager with CacheByObject.
func Setup(mgr ctrl.Manager) error {
	reconciler := &Reconciler{Client: mgr.GetClient(), API: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(name)}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.MyApp{}).
		Owns(&appsv1.Deployment{}).
		WithOptions(manager.ControllerOptions()).
		Complete(reconcile.AsReconciler(mgr.GetClient(), reconciler))
}

// CacheByObject restricts the manager's cache to the Deployments of MyApps.
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&appsv1.Deployment{}: {Label: labels.SelectorFromSet(labels.Set{"app.kubernetes.io/managed-by": name})},
	}
}

// errNotControlled is the error for an existing Deployment that the MyApp does not control.
var errNotControlled = errors.New("it exists and is not controlled by this MyApp; delete or rename it, or choose another name")

// Reconcile creates or patches the Deployment and writes the status. The garbage collector deletes
// the Deployment of a deleted MyApp.
func (r *Reconciler) Reconcile(ctx context.Context, app *v1alpha1.MyApp) (reconcile.Result, error) {
	if !app.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	deployment, err := r.apply(ctx, app)
	statusErr := r.writeStatus(ctx, app, computeStatus(app, deployment, err))
	if errors.Is(err, errNotControlled) {
		return reconcile.Result{RequeueAfter: conflictRetry}, statusErr
	}
	return reconcile.Result{}, errors.Join(err, statusErr)
}

// apply creates or patches the Deployment and returns it. The cache contains only Deployments with
// a label. If another client removed the label, apply reads the Deployment from the API server.
func (r *Reconciler) apply(ctx context.Context, app *v1alpha1.MyApp) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}}
	declare := func() error { return r.declare(app, deployment) }
	_, err := controllerutil.CreateOrPatch(ctx, r.Client, deployment, declare)
	if apierrors.IsAlreadyExists(err) {
		deployment = &appsv1.Deployment{}
		if err = r.API.Get(ctx, client.ObjectKeyFromObject(app), deployment); err == nil {
			before := deployment.DeepCopy()
			if err = declare(); err == nil {
				err = r.Client.Patch(ctx, deployment, client.MergeFrom(before))
			}
		}
	}
	if err != nil {
		return deployment, fmt.Errorf("failed to apply Deployment %q: %w", app.Name, err)
	}
	return deployment, nil
}

// declare sets the fields of a Deployment that the MyApp controls. It leaves other fields to
// defaults and other clients.
func (r *Reconciler) declare(app *v1alpha1.MyApp, deployment *appsv1.Deployment) error {
	if deployment.UID != "" && !metav1.IsControlledBy(deployment, app) {
		return errNotControlled
	}
	metav1.SetMetaDataLabel(&deployment.ObjectMeta, "app.kubernetes.io/managed-by", name)
	deployment.Spec.Replicas = ptr.To(replicas(app))
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: selector(app)}
	template := &deployment.Spec.Template
	for key, value := range selector(app) {
		metav1.SetMetaDataLabel(&deployment.ObjectMeta, key, value)
		metav1.SetMetaDataLabel(&template.ObjectMeta, key, value)
	}
	at := slices.IndexFunc(template.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	if at < 0 {
		at = len(template.Spec.Containers)
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: container})
	}
	template.Spec.Containers[at].Image = app.Spec.Image
	return controllerutil.SetControllerReference(app, deployment, r.Client.Scheme())
}

// selector returns the labels of the Pods of one MyApp. The source document has only app=myapp. Two
// MyApps in a namespace would then fight over their Pods.
func selector(app *v1alpha1.MyApp) map[string]string {
	return map[string]string{"app": container, "app.kubernetes.io/instance": app.Name}
}

func replicas(app *v1alpha1.MyApp) int32 {
	return ptr.Deref(app.Spec.Replicas, v1alpha1.DefaultReplicas)
}

// computeStatus returns the status of a MyApp from its Deployment and the error of applying it.
func computeStatus(app *v1alpha1.MyApp, deployment *appsv1.Deployment, err error) v1alpha1.MyAppStatus {
	status := *app.Status.DeepCopy()
	status.ObservedGeneration, status.Selector = app.Generation, labels.SelectorFromSet(selector(app)).String()
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: app.Generation}
	observed, desired := deployment.Status, replicas(app)
	switch {
	case err != nil:
		ready.Reason, ready.Message = v1alpha1.ReasonAPIError, err.Error()
		if errors.Is(err, errNotControlled) {
			ready.Reason, observed = v1alpha1.ReasonNameConflict, appsv1.DeploymentStatus{}
		}
	case observed.ObservedGeneration < deployment.Generation:
		ready.Reason, ready.Message = v1alpha1.ReasonRolloutInProgress, "the rollout of the Deployment has not started"
	default:
		ready.Reason = v1alpha1.ReasonRolloutInProgress
		ready.Message = fmt.Sprintf("%d of %d replicas ready, %d updated", observed.ReadyReplicas, desired, observed.UpdatedReplicas)
		if observed.Replicas == desired && observed.UpdatedReplicas == desired && observed.AvailableReplicas == desired {
			ready.Status, ready.Reason = metav1.ConditionTrue, v1alpha1.ReasonAllReplicasReady
		}
	}
	status.Replicas, status.ReadyReplicas = observed.Replicas, observed.ReadyReplicas
	meta.SetStatusCondition(&status.Conditions, ready)
	return status
}

// writeStatus patches the status if it differs. Then it sends an Event if the reason of Ready
// changed.
func (r *Reconciler) writeStatus(ctx context.Context, app *v1alpha1.MyApp, status v1alpha1.MyAppStatus) error {
	if equality.Semantic.DeepEqual(app.Status, status) {
		return nil
	}
	patched := app.DeepCopy()
	patched.Status = status
	if err := r.Client.Status().Patch(ctx, patched, client.MergeFrom(app)); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ConditionReady)
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if before == nil || before.Reason != ready.Reason {
		eventType := corev1.EventTypeNormal
		if ready.Reason == v1alpha1.ReasonNameConflict || ready.Reason == v1alpha1.ReasonAPIError {
			eventType = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(app, nil, eventType, ready.Reason, "Reconcile", "%s", ready.Message)
	}
	return nil
}
