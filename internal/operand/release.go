package operand

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/patch"
	"github.com/example/nginx-operator/internal/ratchet"
	"github.com/example/nginx-operator/internal/validation"
)

// Release is the part of the children that a release of the operator and its settings determine.
type Release struct {
	// Image is the container image of Pods whose object sets none.
	Image string
	// ExporterImage is the container image of exporters whose object sets none.
	ExporterImage string
	// IPv6 makes nginx listen on IPv6, in addition to IPv4.
	IPv6 bool
	// Nameservers are the name servers that the cluster gives its Pods, or nil if they are unknown.
	Nameservers []string
}

// Configuration returns the complete nginx configuration for server blocks of the user, which are
// nil for the default. It returns an error if the spec has a value that cannot be rendered.
func (r Release) Configuration(object *v1alpha2.NginxOperator, servers nginxconf.Servers) (Configuration, error) {
	files, err := nginxconf.Render(&object.Spec, servers, r.IPv6, r.Nameservers)
	if err != nil {
		return Configuration{}, err
	}
	return NewConfiguration(files), nil
}

// Inputs returns the inputs that depend only on the spec and the release.
func (r Release) Inputs(object *v1alpha2.NginxOperator) Inputs {
	return Inputs{
		Image: defaults.Image(&object.Spec, r.Image), Exporter: defaults.ExporterImage(&object.Spec, r.ExporterImage),
	}
}

// specInputs returns inputs with placeholders for the referenced objects.
func (r Release) specInputs(object *v1alpha2.NginxOperator) Inputs {
	in := r.Inputs(object)
	if object.Spec.Content != nil {
		in.Content = &Content{}
	}
	return in
}

// PodTemplate returns the Pod template of an object, with its patches, without referenced objects.
func (r Release) PodTemplate(object *v1alpha2.NginxOperator) corev1.PodTemplateSpec {
	deployment := DesiredDeployment(object, r.specInputs(object))
	if patched, errs := patch.Apply(object.Spec.Patches, []client.Object{deployment}, patchesPath); len(errs) == 0 {
		deployment = patched[0].(*appsv1.Deployment)
	}
	return deployment.Spec.Template
}

// CheckPatches returns the errors in the patches of an object that do not depend on the cluster,
// and a warning for each patch without a target.
func (r Release) CheckPatches(object *v1alpha2.NginxOperator) (field.ErrorList, []string) {
	in := r.specInputs(object)
	errs := PatchErrors(object, in)
	if len(object.Spec.Patches) == 0 || len(errs) > 0 {
		return errs, nil
	}

	var warnings, names []string
	children := Desired(object, in)
	for _, child := range children {
		if kind := KindOf(child); slices.Contains(patch.Kinds(), kind) {
			names = append(names, fmt.Sprintf("%s %q", kind, child.GetName()))
		}
	}

	for i, declared := range object.Spec.Patches {
		if !slices.ContainsFunc(children, func(child client.Object) bool { return patch.Hits(declared.Target, child) }) {
			target := strings.TrimSpace(declared.Target.Kind + " " + declared.Target.Name)
			warnings = append(warnings, fmt.Sprintf("%s: %s does not exist, so the patch changes nothing; the children are %s",
				patchesPath.Index(i).Child("target"), target, strings.Join(names, ", ")))
		}
	}

	return nil, warnings
}

// Refusals returns the values of a spec that only an older release could have stored.
func (r Release) Refusals(object *v1alpha2.NginxOperator) []ratchet.Refusal {
	refusals := validation.Refusals(&object.Spec, SpecPath)
	isWhole := func(refusal ratchet.Refusal) bool { return refusal.Err.Field == SpecPath.String() }
	if slices.ContainsFunc(refusals, isWhole) {
		return refusals // rendering it may be expensive
	}

	refusals = append(refusals, r.oversized(object)...)
	if len(object.Spec.Patches) == 0 {
		return refusals
	}
	return append(refusals, patch.Refused(object.Spec.Patches, patchable(object, r.specInputs(object)), patchesPath)...)
}
