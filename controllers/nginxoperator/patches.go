package nginxoperator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/patch"
)

// patchesPath is where the messages about patches begin to say which one they are about.
var patchesPath = specPath.Child("patches")

// patchable returns a child of each kind that can be patched, whether the object has it now or not: an autoscaler may make it need one.
func patchable(object *v1alpha2.NginxOperator, in inputs) []client.Object {
	return []client.Object{
		desiredService(object, in), desiredNetworkPolicy(object, in), desiredDeployment(object, in), desiredPodDisruptionBudget(object, in),
	}
}

// notPatched is the error for patches that cannot be applied to the children as they are now.
type notPatched struct{ error }

// patched returns the complete list of children of an object, with its patches applied.
func patched(object *v1alpha2.NginxOperator, in inputs) ([]client.Object, error) {
	children := desired(object, in)
	if len(object.Spec.Patches) == 0 {
		return children, nil
	}
	children, errs := patch.Apply(object.Spec.Patches, children, patchesPath)
	if len(errs) > 0 {
		return nil, notPatched{errs.ToAggregate()}
	}
	return children, nil
}

// patchedOrNot returns a child with the patches of an object applied, or as it is where they cannot be: CheckPatches tells of that.
func patchedOrNot(object *v1alpha2.NginxOperator, child client.Object) client.Object {
	if out, errs := patch.Apply(object.Spec.Patches, []client.Object{child}, patchesPath); len(errs) == 0 {
		return out[0]
	}
	return child
}

// checkPatches returns what is wrong with the patches of an object.
func checkPatches(object *v1alpha2.NginxOperator, in inputs) field.ErrorList {
	if len(object.Spec.Patches) == 0 {
		return nil
	}
	_, errs := patch.Apply(object.Spec.Patches, patchable(object, in), patchesPath)
	return errs
}

// patchBlockers returns what is wrong with the patches of an object as what blocks changes.
func patchBlockers(object *v1alpha2.NginxOperator, in inputs) []failure {
	var out []failure
	for _, problem := range checkPatches(object, in) {
		out = append(out, failure{v1alpha2.ReasonInvalidConfiguration, problem.Error()})
	}
	return out
}

// CheckPatches returns what is wrong with the patches of an object, as far as the spec says it, and a warning for each that hits nothing.
func (r *Reconciler) CheckPatches(object *v1alpha2.NginxOperator) (field.ErrorList, []string) {
	in := r.specInputs(object)
	errs := checkPatches(object, in)
	if len(object.Spec.Patches) == 0 || len(errs) > 0 {
		return errs, nil
	}
	var warnings, names []string
	children := desired(object, in)
	for _, child := range children {
		if kind := child.GetObjectKind().GroupVersionKind().Kind; slices.Contains(patch.Kinds(), kind) {
			names = append(names, fmt.Sprintf("%s %q", kind, child.GetName()))
		}
	}
	for i, declared := range object.Spec.Patches {
		if !slices.ContainsFunc(children, func(child client.Object) bool { return patch.Hits(declared.Target, child) }) {
			target := strings.TrimSpace(declared.Target.Kind + " " + declared.Target.Name)
			warnings = append(warnings, fmt.Sprintf("%s: there is no %s, so the patch changes nothing; there are %s",
				patchesPath.Index(i).Child("target"), target, strings.Join(names, ", ")))
		}
	}
	return nil, warnings
}

// specInputs returns inputs that stand for what the spec names.
func (r *Reconciler) specInputs(object *v1alpha2.NginxOperator) inputs {
	in := r.newInputs(object)
	if object.Spec.Content != nil {
		in.content = &content{}
	}
	return in
}

// patchedKinds returns the kinds of the children that patches changed.
func patchedKinds(of *declaration, children []client.Object) []string {
	out := sets.New[string]()
	for _, child := range children {
		for _, declared := range of.object.Spec.Patches {
			if patch.Hits(declared.Target, child) {
				out.Insert(declared.Target.Kind)
			}
		}
	}
	return slices.Sorted(maps.Keys(out))
}
