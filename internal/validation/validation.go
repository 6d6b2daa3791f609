// Package validation says what is wrong with a declaration. It holds the rules that the schema cannot hold, and those of
// the schema that matter beyond the API server: what v1alpha1 cannot say travels in an annotation, which no schema checks.
// Admission and the controller ask it, so that nothing depends on the webhook being there. What is handed on to the Pods as it is
// the API server judges; its verdict is told here as one on the spec (docs/adr/0024-dry-run-of-the-pod.md).
package validation

import (
	"encoding/json"
	"fmt"

	"github.com/distribution/reference"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/bounds"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/patch"
)

// maxSpecBytes is how large a spec may be as JSON: v1alpha1 keeps it in an annotation, and all annotations of an object
// together may have 256 KiB.
const maxSpecBytes = 200 << 10

// maxJudgedValues is how many values spec.podTemplate may have, and spec.networkPolicy: for each the API server may have an error to
// tell, and it joins them in a time in proportion to the square of their number.
const maxJudgedValues = 1_024

// maxItems is how many ports, how many files and how many certificates the schema allows.
const maxItems = 16

// maxRanges is how many networks spec.service.loadBalancerSourceRanges may have, for the same reason, and as the schema has it.
const maxRanges = 64

// maxFamilies is how many address families there are.
const maxFamilies = 2

const exampleImage = "docker.io/nginxinc/nginx-unprivileged:1.28.0"

// Spec returns what is wrong with a spec. path is where the spec is in its object.
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
	errs = append(errs, validateAutoscaling(spec, path)...)
	errs = append(errs, validateMonitoring(spec.Monitoring, path.Child("monitoring"))...)
	errs = append(errs, validatePodTemplate(spec.PodTemplate, path.Child("podTemplate"))...)
	errs = append(errs, validateWorkload(spec, path)...)
	errs = append(errs, patch.Check(spec.Patches, path.Child("patches"))...)
	// What the configuration has to listen on is only known where the ports are right.
	if len(errs) == 0 {
		errs = append(errs, validateConfiguration(spec, path)...)
	}
	return firstOf(errs, path)
}

// maxErrors is how many are told of. Kubernetes joins them in a time in proportion to the square of their number.
const maxErrors = 32

func firstOf(errs field.ErrorList, path *field.Path) field.ErrorList {
	more := len(errs) - maxErrors
	if more <= 0 {
		return errs
	}
	return append(errs[:maxErrors:maxErrors], field.Forbidden(path, fmt.Sprintf("and %d more problems; correct these first", more)))
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

func validateImage(image string, path *field.Path) field.ErrorList {
	if image == "" {
		return nil
	}
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		return field.ErrorList{field.Invalid(path, image, fmt.Sprintf("%v; write for example %s", err, exampleImage))}
	}
	return nil
}

// validateReferences looks at the names of the ConfigMaps and Secrets. Whether they exist the controller finds out.
func validateReferences(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Config != nil {
		at := path.Child("config")
		if (spec.Config.Inline == "") == (spec.Config.ConfigMapRef == nil) {
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, "takes exactly one of inline and configMapRef"))
		}
		if ref := spec.Config.ConfigMapRef; ref != nil {
			errs = append(errs, validateName(ref.Name, at.Child("configMapRef", "name"))...)
			for _, message := range utilvalidation.IsConfigMapKey(defaults.ConfigKey(ref)) {
				errs = append(errs, field.Invalid(at.Child("configMapRef", "key"), ref.Key, message))
			}
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

func validateName(name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range apivalidation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(path, name, message))
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

// validateSize bounds what all other rules look at.
func validateSize(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(spec.Ports); n > maxItems {
		errs = append(errs, field.TooMany(path.Child("ports"), n, maxItems))
	}
	if n := len(spec.Files); n > maxItems {
		errs = append(errs, field.TooMany(path.Child("files"), n, maxItems))
	}
	if n := len(spec.TLS); n > maxItems {
		errs = append(errs, field.TooMany(path.Child("tls"), n, maxItems))
	}
	if spec.Service != nil && len(spec.Service.LoadBalancerSourceRanges) > maxRanges {
		at := path.Child("service", "loadBalancerSourceRanges")
		errs = append(errs, field.TooMany(at, len(spec.Service.LoadBalancerSourceRanges), maxRanges))
	}
	if spec.Service != nil && len(spec.Service.IPFamilies) > maxFamilies {
		errs = append(errs, field.TooMany(path.Child("service", "ipFamilies"), len(spec.Service.IPFamilies), maxFamilies))
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
			"has %d bytes as JSON, and at most %d can be stored; put the configuration into a ConfigMap and name it in %s",
			len(raw), maxSpecBytes, path.Child("config", "configMapRef")))}
	}
	errs = append(errs, sizeOfExpose(spec.Expose, path.Child("expose"))...)
	errs = append(errs, validateValues(spec.PodTemplate, path.Child("podTemplate"))...)
	for _, err := range validateValues(workloadOf(spec), path) {
		err.Detail = "env, volumes, initContainers and sidecars together: " + err.Detail
		errs = append(errs, err)
	}
	return append(errs, validateValues(spec.NetworkPolicy, path.Child("networkPolicy"))...)
}

// validateValues bounds how much of what is handed on as it is the API server has to judge.
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

// validateConfiguration reports the problems of a configuration that is in the object itself. One from a ConfigMap is for
// the controller: admission reads nothing.
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
