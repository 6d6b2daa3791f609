// Package validation validates specs. Spec has the rules that the schema of the CRD cannot express,
// and Refusals the rules of the schema. Admission and the controller call both, so that nothing
// depends on the webhook. The API server validates Pod fields, and this package maps its errors to
// fields of the spec (docs/adr/0024-dry-run-of-the-pod.md).
package validation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/patch"
	"github.com/example/nginx-operator/pkg/bounds"
)

// maxSpecBytes is the maximum size of a spec as JSON. v1alpha1 stores it in an annotation, and the
// annotations of an object can have 256 KiB in total.
const maxSpecBytes = 200 << 10

// maxJudgedValues is the maximum number of values in spec.podTemplate, in spec.networkPolicy, and
// in the fields of workloadOf together. The API server can return an error for each, and joins
// errors in quadratic time.
const maxJudgedValues = 1_024

// Spec returns the errors of a spec that the schema does not have. path is the path of the spec in
// its object.
func Spec(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	if errs := validateSize(spec, path); len(errs) > 0 {
		return errs
	}

	resources := ptr.Deref(spec.Resources, corev1.ResourceRequirements{})
	errs := slices.Concat(
		validateImage(spec.Image, path.Child("image")),
		validatePorts(spec, path),
		validateFiles(spec.Files, path.Child("files")),
		validateResolver(spec, path.Child("nginx", "resolver")),
		validateContent(spec.Content, path.Child("content")),
		validateService(spec.Service, path.Child("service")),
		validateExpose(spec.Expose, path.Child("expose")),
		validateResources(resources.Requests, resources.Limits, path.Child("resources")),
		validateTargets(spec, path),
		validateMonitoring(spec.Monitoring, path.Child("monitoring")),
		validatePodTemplate(spec.PodTemplate, path.Child("podTemplate")),
		validateWorkload(spec, path),
		patch.Check(spec.Patches, path.Child("patches")),
	)

	outside, _ := nginxconf.CheckOutside(spec, nil)
	for _, problem := range outside {
		at := path.Child("nginx", strings.TrimPrefix(problem.Field, "spec.nginx."))
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, problem.String()))
	}

	// The configuration can only be checked against valid ports. The controller checks
	// configurations in ConfigMaps, because admission makes no requests.
	if len(errs) == 0 && spec.Config != nil && spec.Config.Inline != "" {
		problems, _ := nginxconf.CheckInline(spec, nil)
		for _, problem := range problems {
			errs = append(errs, field.Invalid(path.Child("config", "inline"), field.OmitValueType{}, problem.String()))
		}
	}

	return firstOf(errs, path)
}

// validateSize bounds the input of all other rules.
func validateSize(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	raw, err := json.Marshal(spec)
	if err != nil {
		return field.ErrorList{field.InternalError(path, fmt.Errorf("failed to encode the spec: %w", err))}
	}
	if err := sizeError(raw, path); err != nil {
		return field.ErrorList{err}
	}

	var errs field.ErrorList
	for _, part := range []struct {
		value  any
		at     *field.Path
		prefix string
	}{
		{spec.PodTemplate, path.Child("podTemplate"), ""},
		{workloadOf(spec), path, "the total of env, volumes, initContainers, and sidecars "},
		{spec.NetworkPolicy, path.Child("networkPolicy"), ""},
	} {
		raw, err := json.Marshal(part.value)
		if err == nil {
			err = bounds.Values(raw, maxJudgedValues)
		}
		if err != nil {
			errs = append(errs, field.Invalid(part.at, field.OmitValueType{}, part.prefix+err.Error()+"; remove some"))
		}
	}

	return errs
}

// sizeError returns the error of a spec whose JSON is too large, or nil.
func sizeError(raw []byte, path *field.Path) *field.Error {
	if len(raw) <= maxSpecBytes {
		return nil
	}
	return field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
		"has %d bytes as JSON, the limit is %d; move the configuration to a ConfigMap and reference it in %s",
		len(raw), maxSpecBytes, path.Child("config", "configMapRef")))
}
