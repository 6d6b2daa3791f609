package controller

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
	"github.com/example/nginx-operator/internal/apply"
	operatormanager "github.com/example/nginx-operator/internal/manager"
	"github.com/example/nginx-operator/internal/metadata"
)

// Setup adds the controller to the manager, whose scheme has v1alpha1 and whose cache keeps Deployments as CacheByObject
// says.
func Setup(mgr ctrl.Manager) error {
	reconciler := &Reconciler{
		Client: mgr.GetClient(),
		Applier: &apply.Applier{
			Client:     mgr.GetClient(),
			Reader:     mgr.GetAPIReader(),
			Annotation: metadata.AnnotationLastDeclared,
			Wrote:      func(string, apply.Verb) {},
		},
		Recorder: mgr.GetEventRecorder(OperatorName),
	}
	err := builder.ControllerManagedBy(mgr).
		// Events of the own status writes are not left out: a pass that read an older status than the stored one is made right by them.
		For(&v1alpha1.MyApp{}).
		Owns(&appsv1.Deployment{}).
		WithOptions(operatormanager.ControllerOptions()).
		Complete(reconcile.AsReconciler(mgr.GetClient(), reconciler))
	if err != nil {
		return fmt.Errorf("failed to set up the controller of MyApps: %w", err)
	}
	return nil
}

// CacheByObject says what the manager's cache keeps for this controller: only the Deployments that it made, and of each
// only its status and whether it still is as declared. With a cache that keeps all of a Deployment the controller does the
// same, but reads the Deployment from the API server in each pass.
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&appsv1.Deployment{}: {
			Label:     labels.SelectorFromSet(labels.Set{metadata.LabelManagedBy: OperatorName}),
			Transform: slimDeployment,
		},
	}
}

// slimDeployment passes anything else through (the cache also hands over tombstones).
func slimDeployment(in any) (any, error) {
	if deployment, ok := in.(*appsv1.Deployment); ok {
		// The comparison needs the whole object, so it comes first.
		record := apply.Digest(deployment, metadata.AnnotationLastDeclared)
		deployment.Annotations = map[string]string{metadata.AnnotationLastDeclared: record}
		deployment.ManagedFields = nil
		deployment.Spec = appsv1.DeploymentSpec{}
	}
	return in, nil
}
