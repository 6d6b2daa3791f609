package operand

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// Desired returns all children of an object without its patches, in the order in which they depend
// on each other.
func Desired(object *v1alpha2.NginxOperator, in Inputs) []client.Object {
	children := []client.Object{newConfigMap(object, in, ConfigName(object, in), Content{Text: in.Config.Files})}
	if in.Content != nil {
		children = append(children, newConfigMap(object, in, ContentName(object, in), *in.Content))
	}
	if in.Files != nil {
		children = append(children, newConfigMap(object, in, FilesName(object, in), *in.Files))
	}

	for _, directory := range in.Directories {
		children = append(children, newConfigMap(object, in, DirectoryName(object, in, directory), directory.Content))
	}

	children = append(children, DesiredService(object, in))
	if defaults.HasNetworkPolicy(&object.Spec) {
		children = append(children, desiredNetworkPolicy(object, in))
	}

	deployment := DesiredDeployment(object, in)
	children = append(children, deployment)
	if *deployment.Spec.Replicas > 1 {
		children = append(children, desiredPodDisruptionBudget(object, in))
	}
	if object.Spec.Autoscaling != nil {
		children = append(children, DesiredAutoscaler(object, in))
	}
	if HasIngress(&object.Spec) {
		children = append(children, desiredIngress(object, in))
	}

	for _, optional := range OptionalKinds {
		if optional.IsDeclared(&object.Spec) && in.Missing[optional.Kind] == "" {
			children = append(children, optional.desired(object, in))
		}
	}

	return children
}
