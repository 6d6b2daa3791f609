package validation

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestVerdictOfPatches verifies that the API server's errors in a patched child are errors of the
// patch, except errors in a field that another field of the spec sets.
func TestVerdictOfPatches(t *testing.T) {
	pod := field.NewPath("spec", "template", "spec")
	refused := apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", field.ErrorList{
		field.Invalid(pod.Child("hostAliases").Index(0).Child("ip"), "none", "must be an address"),
		field.Invalid(pod.Child("tolerations").Index(0).Child("key"), "a b", "must be a name"),
	})
	of := func(kinds ...string) []v1alpha2.Patch {
		var out []v1alpha2.Patch
		for _, kind := range kinds {
			out = append(out, v1alpha2.Patch{Target: v1alpha2.PatchTarget{Kind: kind}})
		}
		return out
	}
	const tolerations = `spec.podTemplate.tolerations[0].key: Invalid value: "a b": must be a name`
	const said = `: Invalid value: Deployment: spec.template.spec.hostAliases[0].ip: "none": must be an address`
	for name, test := range map[string]struct {
		err     error
		patches []v1alpha2.Patch
		want    []string
	}{
		"one":             {refused, of("Service", "Deployment"), []string{tolerations, "spec.patches[1].patch" + said}},
		"several":         {refused, of("Deployment", "Deployment"), []string{tolerations, "spec.patches" + said}},
		"of another kind": {refused, of("Service"), []string{tolerations}},
		"none":            {refused, nil, []string{tolerations}},
		"another error":   {errors.New("connection refused"), of("Deployment"), nil},
		"no error":        {nil, of("Deployment"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Verdict(test.err, &v1alpha2.NginxOperatorSpec{Patches: test.patches}, field.NewPath("spec")) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	long := apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", field.ErrorList{
		field.Invalid(pod, strings.Repeat("x", 4*maxVerdict), "wrong"),
	})
	got := Verdict(long, &v1alpha2.NginxOperatorSpec{Patches: of("Deployment")}, field.NewPath("spec"))
	if len(got) != 1 || len(got[0].Detail) > maxVerdict+4 {
		t.Errorf("got %v", got)
	}
}
