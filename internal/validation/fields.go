package validation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

const exampleImage = "docker.io/nginxinc/nginx-unprivileged:1.30.7"

func validateImage(image string, path *field.Path) field.ErrorList {
	if _, err := reference.ParseNormalizedNamed(image); err != nil && image != "" {
		return invalid(path, image, fmt.Sprintf("%v; write for example %s", err, exampleImage))
	}
	return nil
}

// validateResolver requires the addresses of a resolver if patches change which name servers the Pods
// have.
func validateResolver(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	resolver := defaults.Nginx(spec).Resolver
	if resolver == nil || len(resolver.Addresses) > 0 || !patchesSet(spec, "dnsPolicy") && !patchesSet(spec, "dnsConfig") {
		return nil
	}
	return field.ErrorList{field.Required(path.Child("addresses"),
		"spec.patches sets dnsPolicy or dnsConfig, so the Pods do not have the name servers of the cluster; set the name servers of nginx here")}
}

func validateService(service *v1alpha2.Service, path *field.Path) field.ErrorList {
	if service == nil {
		return nil
	}

	errs := metav1validation.ValidateLabels(service.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(service.Annotations, path.Child("annotations"))...)
	if class := service.LoadBalancerClass; class != nil {
		errs = append(errs, invalid(path.Child("loadBalancerClass"), *class, utilvalidation.IsQualifiedName(*class)...)...)
	}
	return errs
}

// validatePodTemplate rejects invalid labels and annotations, and invalid names of pull Secrets.
// The API server would accept these names.
func validatePodTemplate(template *v1alpha2.PodTemplate, path *field.Path) field.ErrorList {
	if template == nil {
		return nil
	}

	errs := metav1validation.ValidateLabels(template.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(template.Annotations, path.Child("annotations"))...)
	for i, secret := range template.ImagePullSecrets {
		at := path.Child("imagePullSecrets").Index(i).Child("name")
		errs = append(errs, invalid(at, secret.Name, apivalidation.NameIsDNSSubdomain(secret.Name, false)...)...)
	}

	return errs
}

// validateMonitoring rejects references of images, quantities, and labels that the schema accepts.
func validateMonitoring(monitoring *v1alpha2.Monitoring, path *field.Path) field.ErrorList {
	if monitoring == nil {
		return nil
	}

	errs := validateImage(monitoring.Image, path.Child("image"))
	if resources := monitoring.Resources; resources != nil {
		errs = append(errs, validateResources(resources.Requests, resources.Limits, path.Child("resources"))...)
	}
	if monitor := monitoring.PodMonitor; monitor != nil {
		errs = append(errs, validateLabels(monitor.Labels, path.Child("podMonitor", "labels"))...)
	}
	if monitoring.Alerts != nil {
		errs = append(errs, validateLabels(monitoring.Alerts.Labels, path.Child("alerts", "labels"))...)
	}
	return errs
}

// ownLabels are the labels by which the operator, the Service, and the NetworkPolicy select Pods,
// and the standard labels that describe an object.
var ownLabels = []string{
	wellknown.LabelName, wellknown.LabelInstance, wellknown.LabelVersion,
	wellknown.LabelComponent, wellknown.LabelPartOf, wellknown.LabelManagedBy,
}

// ownPrefix is the prefix of the operator's own labels and annotations.
const ownPrefix = "operator.example.com/"

// validateLabels rejects invalid labels, and labels of the operator. For labels of the Service and
// of Pods, the schema does the latter.
func validateLabels(labels map[string]string, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(labels, path)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if slices.Contains(ownLabels, key) || strings.HasPrefix(key, ownPrefix) {
			errs = append(errs,
				field.Forbidden(path.Key(key), "this label is reserved for the operator; remove it, or use your own prefix"))
		}
	}
	return errs
}

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
			"has %d bytes as JSON, the limit is %d; shorten the annotations", len(raw), maxExposeBytes))}
	}
	return apivalidation.ValidateAnnotations(expose.Ingress.Annotations, path.Child("ingress", "annotations"))
}

// invalid returns an error for each message about a value.
func invalid(path *field.Path, value string, messages ...string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, bounded(value), message))
	}
	return errs
}

// maxErrors is the maximum number of returned errors. Kubernetes joins errors in quadratic time.
const maxErrors = 32

func firstOf(errs field.ErrorList, path *field.Path) field.ErrorList {
	more := len(errs) - maxErrors
	if more <= 0 {
		return errs
	}
	return append(errs[:maxErrors:maxErrors], field.Forbidden(path, fmt.Sprintf("and %d more errors; correct these first", more)))
}

// maxVerdict is the maximum size in bytes of a field, and of a message, that can repeat the user's
// text.
const maxVerdict = 512

// bounded shortens a text to maxVerdict bytes, at the end of a character.
func bounded(text string) string {
	if len(text) <= maxVerdict {
		return text
	}
	return strings.ToValidUTF8(text[:maxVerdict], "") + "…"
}
