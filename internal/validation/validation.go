// Package validation validates specs. It has the rules that the schema cannot express. It also
// repeats rules of the schema, because v1alpha1 stores newer fields in an annotation that no schema
// validates. Admission and the controller call it, so that nothing depends on the webhook. The API
// server validates Pod fields, and this package maps its errors to fields of the spec
// (docs/adr/0024-dry-run-of-the-pod.md).
package validation

import (
	"encoding/json"
	"fmt"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/bounds"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/patch"
)

// maxSpecBytes is the maximum size of a spec as JSON. v1alpha1 stores it in an annotation, and the
// annotations of an object can have 256 KiB in total.
const maxSpecBytes = 200 << 10

// maxJudgedValues is the maximum number of values in spec.podTemplate, in spec.networkPolicy, and
// in the fields of workloadOf together. The API server can return an error for each, and joins
// errors in quadratic time.
const maxJudgedValues = 1_024

// maxItems is the maximum number of ports, of files, and of certificates, as in the schema.
const maxItems = 16

// maxRanges is the maximum number of spec.service.loadBalancerSourceRanges, as in the schema.
const maxRanges = 64

// maxFamilies is the number of address families.
const maxFamilies = 2

// Spec returns the errors of a spec. path is the path of the spec in its object.
func Spec(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	errs := validateSize(spec, path)
	if len(errs) > 0 {
		return errs
	}
	errs = append(errs, validateNumbers(spec, path)...)
	errs = append(errs, validateImage(spec.Image, path.Child("image"))...)
	errs = append(errs, validatePorts(spec, path)...)
	errs = append(errs, validateReferences(spec, path)...)
	errs = append(errs, validateFiles(spec.Files, path.Child("files"))...)
	errs = append(errs, validateCache(spec.Cache, path.Child("cache"))...)
	errs = append(errs, validateService(spec.Service, path.Child("service"))...)
	errs = append(errs, validateExpose(spec.Expose, path.Child("expose"))...)
	errs = append(errs, validateResources(spec.Resources, path.Child("resources"))...)
	errs = append(errs, Autoscaling(spec, path)...)
	errs = append(errs, validateMonitoring(spec.Monitoring, path.Child("monitoring"))...)
	errs = append(errs, validatePodTemplate(spec.PodTemplate, path.Child("podTemplate"))...)
	errs = append(errs, validateWorkload(spec, path)...)
	errs = append(errs, patch.Check(spec.Patches, path.Child("patches"))...)
	// The configuration can only be checked against valid ports.
	if len(errs) == 0 {
		errs = append(errs, validateConfiguration(spec, path)...)
	}
	return firstOf(errs, path)
}

func validateNumbers(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := defaults.Replicas(spec); n < 0 || n > 1000 {
		errs = append(errs, field.Invalid(path.Child("replicas"), n, "must be between 0 and 1000"))
	}
	if n := ptr.Deref(spec.DrainSeconds, v1alpha2.DefaultDrainSeconds); n < 5 || n > 3600 {
		errs = append(errs, field.Invalid(path.Child("drainSeconds"), n, "must be between 5 and 3600"))
	}
	return errs
}

// validateReferences validates the names of ConfigMaps and Secrets. The controller checks whether
// they exist.
func validateReferences(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Config != nil {
		at := path.Child("config")
		if (spec.Config.Inline == "") == (spec.Config.ConfigMapRef == nil) {
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, "takes exactly one of inline and configMapRef"))
		}
		if ref := spec.Config.ConfigMapRef; ref != nil {
			errs = append(errs, validateName(ref.Name, at.Child("configMapRef", "name"))...)
			errs = append(errs, validateConfigMapKey(defaults.ConfigKey(ref), at.Child("configMapRef", "key"))...)
		}
	}

	if spec.Content != nil {
		errs = append(errs, validateName(spec.Content.ConfigMapRef.Name, path.Child("content", "configMapRef", "name"))...)
	}

	for i, tls := range spec.TLS {
		errs = append(errs, validateName(tls.SecretName, path.Child("tls").Index(i).Child("secretName"))...)
	}
	return errs
}

func validateService(service *v1alpha2.Service, path *field.Path) field.ErrorList {
	if service == nil {
		return nil
	}
	errs := validateLabels(service.Labels, path.Child("labels"))
	errs = append(errs, validateAnnotations(service.Annotations, path.Child("annotations"))...)
	if class := service.LoadBalancerClass; class != nil {
		for _, message := range utilvalidation.IsQualifiedName(*class) {
			errs = append(errs, field.Invalid(path.Child("loadBalancerClass"), *class, message))
		}
	}
	return errs
}

// validateSize bounds the input of all other rules.
func validateSize(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	errs := atMost(len(spec.Ports), maxItems, path.Child("ports"))
	errs = append(errs, atMost(len(spec.Files), maxItems, path.Child("files"))...)
	errs = append(errs, atMost(len(spec.TLS), maxItems, path.Child("tls"))...)
	if service, at := spec.Service, path.Child("service"); service != nil {
		errs = append(errs, atMost(len(service.LoadBalancerSourceRanges), maxRanges, at.Child("loadBalancerSourceRanges"))...)
		errs = append(errs, atMost(len(service.IPFamilies), maxFamilies, at.Child("ipFamilies"))...)
	}

	errs = append(errs, sizeOfMonitoring(spec.Monitoring, path.Child("monitoring"))...)
	if errs = append(errs, validateWorkloadSize(spec, path)...); len(errs) > 0 {
		return errs
	}

	raw, err := json.Marshal(spec)
	if err != nil {
		return field.ErrorList{field.InternalError(path, fmt.Errorf("failed to encode the spec: %w", err))}
	}
	if len(raw) > maxSpecBytes {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
			"has %d bytes as JSON, and the limit is %d; move the configuration to a ConfigMap and reference it in %s",
			len(raw), maxSpecBytes, path.Child("config", "configMapRef")))}
	}

	errs = append(errs, sizeOfExpose(spec.Expose, path.Child("expose"))...)
	errs = append(errs, validateValues(spec.PodTemplate, path.Child("podTemplate"))...)
	for _, err := range validateValues(workloadOf(spec), path) {
		err.Detail = "env, volumes, initContainers, and sidecars together: " + err.Detail
		errs = append(errs, err)
	}
	return append(errs, validateValues(spec.NetworkPolicy, path.Child("networkPolicy"))...)
}

// validateValues bounds the number of values that the API server validates.
func validateValues(part any, path *field.Path) field.ErrorList {
	raw, err := json.Marshal(part)
	if err == nil {
		err = bounds.Values(raw, maxJudgedValues)
	}
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return nil
}

// validateConfiguration validates an inline configuration. The controller validates configurations
// in ConfigMaps, because admission makes no requests.
func validateConfiguration(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	if spec.Config == nil || spec.Config.Inline == "" {
		return nil
	}
	var errs field.ErrorList
	for _, problem := range nginxconf.Check(spec, spec.Config.Inline) {
		errs = append(errs, field.Invalid(path.Child("config", "inline"), field.OmitValueType{}, problem.String()))
	}
	return errs
}
