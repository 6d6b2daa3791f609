package validation

import (
	"encoding/json"
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// maxExposeBytes is the maximum size of spec.expose as JSON. The Ingress has its annotations twice,
// because the last declaration is an annotation too, and the annotations of an object can have
// 256 KiB in total.
const maxExposeBytes = 64 << 10

// validateExpose rejects an empty expose, which the schema allows for a later release
// (docs/adr/0052-rules-are-frozen.md), and bounds the part of a spec that becomes an Ingress.
func validateExpose(expose *v1alpha2.Expose, path *field.Path) field.ErrorList {
	switch {
	case expose == nil || expose.Ingress == nil && expose.HTTPRoute != nil:
		return nil
	case expose.Ingress == nil:
		const detail = "must have exactly one of ingress and httpRoute; set one, or remove expose"
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, detail)}
	}
	if raw, err := json.Marshal(expose); err != nil || len(raw) > maxExposeBytes {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
			"has %d bytes as JSON, and the limit is %d; shorten the annotations", len(raw), maxExposeBytes))}
	}
	return apivalidation.ValidateAnnotations(expose.Ingress.Annotations, path.Child("ingress", "annotations"))
}

// inExpose converts the rest of a field below the rules of an Ingress to the rest of a field below
// spec.expose.ingress.hosts.
func inExpose(rest string) string {
	return strings.TrimSuffix(strings.Replace(rest, ".http.paths[", ".paths[", 1), ".path")
}
