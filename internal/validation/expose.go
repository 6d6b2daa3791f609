package validation

import (
	"encoding/json"
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const (
	// maxPaths is the maximum number of paths of a host, as in the schema.
	maxPaths = 16
	// maxPath is the maximum length of a path, as in the schema.
	maxPath = 256
	// maxExposeBytes is the maximum size of spec.expose as JSON. The Ingress has its annotations
	// twice, because the last declaration is an annotation too, and the annotations of an object
	// can have 256 KiB in total.
	maxExposeBytes = 64 << 10
)

// sizeOfExpose bounds the part of a spec that becomes an Ingress or an HTTPRoute.
func sizeOfExpose(expose *v1alpha2.Expose, path *field.Path) field.ErrorList {
	if expose == nil {
		return nil
	}
	var errs field.ErrorList
	if expose.HTTPRoute != nil {
		errs = sizeOfHTTPRoute(expose.HTTPRoute, path.Child("httpRoute"))
	}
	if expose.Ingress == nil {
		return errs
	}

	hosts := path.Child("ingress", "hosts")
	if n := len(expose.Ingress.Hosts); n > maxHosts {
		return append(errs, field.TooMany(hosts, n, maxHosts))
	}

	for i, host := range expose.Ingress.Hosts {
		errs = append(errs, atMost(len(host.Paths), maxPaths, hosts.Index(i).Child("paths"))...)
	}

	if raw, err := json.Marshal(expose); err != nil || len(raw) > maxExposeBytes {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
			"has %d bytes as JSON, and the limit is %d; shorten the annotations", len(raw), maxExposeBytes)))
	}
	return errs
}

// validateExpose validates values that the API server accepts, or reports without the field of the
// spec.
func validateExpose(expose *v1alpha2.Expose, path *field.Path) field.ErrorList {
	if expose == nil {
		return nil
	}
	switch {
	case (expose.Ingress == nil) == (expose.HTTPRoute == nil):
		const detail = "must have exactly one of ingress and httpRoute; set one, or remove expose"
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, detail)}
	case expose.HTTPRoute != nil:
		return validateHTTPRoute(expose.HTTPRoute, path.Child("httpRoute"))
	}

	path = path.Child("ingress")
	errs := validateAnnotations(expose.Ingress.Annotations, path.Child("annotations"))
	if len(expose.Ingress.Hosts) == 0 {
		errs = append(errs, field.Required(path.Child("hosts"), "an Ingress requires at least one host"))
	}

	for i, host := range expose.Ingress.Hosts {
		at := path.Child("hosts").Index(i)
		if host.Host == "" {
			errs = append(errs, field.Required(at.Child("host"), ""))
		}

		for j, one := range host.Paths {
			if len(one) > maxPath {
				errs = append(errs, field.TooLong(at.Child("paths").Index(j), "", maxPath))
			}
		}

		if name := host.TLSSecretName; name != "" {
			for _, message := range apivalidation.NameIsDNSSubdomain(name, false) {
				errs = append(errs, field.Invalid(at.Child("tlsSecretName"), name, message))
			}
		}
	}
	return errs
}

// inExpose converts the rest of a field below the rules of an Ingress to the rest of a field below
// spec.expose.ingress.hosts.
func inExpose(rest string) string {
	return strings.TrimSuffix(strings.Replace(rest, ".http.paths[", ".paths[", 1), ".path")
}
