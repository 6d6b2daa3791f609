package operand

import (
	"encoding/json"
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/ratchet"
	"github.com/example/nginx-operator/internal/validation"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/apply"
)

const (
	// maxChildAnnotations is the limit in bytes for the declared annotations of a child. It reserves
	// 4 KiB for annotations of other controllers, and for those that only live objects have.
	maxChildAnnotations = apivalidation.TotalAnnotationSizeLimitB - 4<<10
	// smallSpec is a size of a spec in bytes of JSON, up to which no child has too many annotations.
	smallSpec = 48 << 10
)

// oversized returns the fields of a spec that give a child too many annotations for the API server.
func (r Release) oversized(object *v1alpha2.NginxOperator) []ratchet.Refusal {
	if raw, err := json.Marshal(object.Spec); err == nil && len(raw) <= smallSpec {
		return nil
	}
	if len(validation.Spec(&object.Spec, SpecPath)) > 0 {
		return nil // an older release stored it, and only valid specs are rendered
	}

	children, err := Children(object, r.specInputs(object))
	if err != nil {
		return nil // CheckPatches reports patches that cannot be applied
	}

	var refusals []ratchet.Refusal
	for _, child := range children {
		size, err := apply.AnnotationBytes(child, wellknown.AnnotationLastDeclared)
		if err != nil || size <= maxChildAnnotations {
			continue
		}

		kind := KindOf(child)
		path, value := largestField(child, &object.Spec)
		detail := fmt.Sprintf("%s would have %d bytes of annotations, the limit is %d: shorten this field. "+
			"Annotations count twice, because the operator stores in an annotation what it applied last",
			kind, size, maxChildAnnotations)

		refusals = append(refusals, ratchet.Refusal{
			Err: field.Invalid(path, field.OmitValueType{}, detail), Value: kind + "\x00" + ShortHash(value),
		})
	}

	return refusals
}

// largestField returns the largest field of a spec that becomes annotations of a child, and its
// JSON. Valid specs are limited, so only annotations of the Service and patches can be too large.
func largestField(child client.Object, spec *v1alpha2.NginxOperatorSpec) (path *field.Path, value string) {
	path = SpecPath
	consider := func(at *field.Path, declared any) {
		if raw, err := json.Marshal(declared); err == nil && len(raw) > len(value) {
			path, value = at, string(raw)
		}
	}
	if KindOf(child) == "Service" && spec.Service != nil {
		consider(SpecPath.Child("service", "annotations"), spec.Service.Annotations)
	}

	consider(patchesPath, spec.Patches)
	return path, value
}
