package operand

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// Desired returns all children of an object without its patches, in the order in which they depend
// on each other.
func Desired(object *v1alpha2.NginxOperator, in Inputs) []client.Object {
	children := []client.Object{DesiredConfigMap(object, in)}
	if in.Content != nil {
		children = append(children, DesiredContentConfigMap(object, in))
	}
	if in.Files != nil {
		children = append(children, DesiredFilesConfigMap(object, in))
	}
	deployment := DesiredDeployment(object, in)
	children = append(children, DesiredService(object, in))
	if defaults.HasNetworkPolicy(&object.Spec) {
		children = append(children, desiredNetworkPolicy(object, in))
	}
	children = append(children, deployment)
	if needsPodDisruptionBudget(*deployment.Spec.Replicas) {
		children = append(children, desiredPodDisruptionBudget(object, in))
	}
	if object.Spec.Autoscaling != nil {
		children = append(children, desiredAutoscaler(object, in))
	}
	if HasIngress(&object.Spec) {
		children = append(children, desiredIngress(object, in))
	}
	return append(children, desiredOptional(object, in)...)
}

// PodTemplateOf returns the Pod template of the Deployment among children, or nil.
func PodTemplateOf(children []client.Object) *corev1.PodTemplateSpec {
	for _, child := range children {
		if deployment, ok := child.(*appsv1.Deployment); ok {
			return &deployment.Spec.Template
		}
	}
	return nil
}
