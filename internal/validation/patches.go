package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// patchesOf returns the field of the patches of a kind: the patch if there is one, spec.patches if
// there are several, and nil if there is none. In a child without patches, only fields of the table
// origins can be invalid.
func patchesOf(kind string, spec *v1alpha2.NginxOperatorSpec, path *field.Path) *field.Path {
	if spec == nil {
		return nil
	}
	isOfKind := func(patch v1alpha2.Patch) bool { return patch.Target.Kind == kind }
	first := slices.IndexFunc(spec.Patches, isOfKind)
	switch {
	case first < 0:
		return nil
	case slices.ContainsFunc(spec.Patches[first+1:], isOfKind):
		return path.Child("patches")
	}
	return path.Child("patches").Index(first).Child("patch")
}

// patchesDeployment reports whether a spec patches its Deployment.
func patchesDeployment(spec *v1alpha2.NginxOperatorSpec) bool {
	return patchesOf("Deployment", spec, field.NewPath("spec")) != nil
}
