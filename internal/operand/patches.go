package operand

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/patch"
)

// patchesPath is the root of field paths in messages about patches.
var patchesPath = SpecPath.Child("patches")

// patchable returns a child of each kind that can be patched, also of those that the object does
// not have now, for example the PodDisruptionBudget of a single Pod.
func patchable(object *v1alpha2.NginxOperator, in Inputs) []client.Object {
	return []client.Object{
		DesiredService(object, in), desiredNetworkPolicy(object, in), DesiredDeployment(object, in), desiredPodDisruptionBudget(object, in),
	}
}

// NotPatched is the error for patches that cannot be applied to the current children.
type NotPatched struct{ error }

// Children returns all children of an object, with its patches applied. The error is a NotPatched.
func Children(object *v1alpha2.NginxOperator, in Inputs) ([]client.Object, error) {
	children, errs := patch.Apply(object.Spec.Patches, Desired(object, in), patchesPath)
	if len(errs) > 0 {
		return nil, NotPatched{errs.ToAggregate()}
	}
	return children, nil
}

// PatchErrors returns the errors in the patches of an object.
func PatchErrors(object *v1alpha2.NginxOperator, in Inputs) field.ErrorList {
	if len(object.Spec.Patches) == 0 {
		return nil
	}
	_, errs := patch.Apply(object.Spec.Patches, patchable(object, in), patchesPath)
	return errs
}

// PatchedKinds returns the kinds of children that have patches, sorted.
func PatchedKinds(patches []v1alpha2.Patch, children []client.Object) []string {
	kinds := sets.New[string]()
	for _, child := range children {
		for _, declared := range patches {
			if patch.Hits(declared.Target, child) {
				kinds.Insert(declared.Target.Kind)
			}
		}
	}
	return sets.List(kinds)
}
