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
	// maxHosts and maxPaths are how many the schema allows, for each host.
	maxHosts = 16
	maxPaths = 16
	// maxPath is how long a path may be, as the schema has it.
	maxPath = 256
	// maxExposeBytes is how large spec.expose may be as JSON: the Ingress has its annotations twice, in the record of what was declared
	// as well, and all annotations of an object together may have 256 KiB.
	maxExposeBytes = 64 << 10
)

// sizeOfExpose bounds what the API server has to judge of an Ingress or an HTTPRoute.
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
		if n := len(host.Paths); n > maxPaths {
			errs = append(errs, field.TooMany(hosts.Index(i).Child("paths"), n, maxPaths))
		}
	}
	if raw, err := json.Marshal(expose); err != nil || len(raw) > maxExposeBytes {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
			"has %d bytes as JSON, and at most %d fit into the Ingress; shorten its annotations", len(raw), maxExposeBytes)))
	}
	return errs
}

// validateExpose looks at what the API server cannot judge by the name of the field, or not when the Ingress is there already.
func validateExpose(expose *v1alpha2.Expose, path *field.Path) field.ErrorList {
	if expose == nil {
		return nil
	}
	switch {
	case (expose.Ingress == nil) == (expose.HTTPRoute == nil):
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "takes exactly one of ingress and httpRoute")}
	case expose.HTTPRoute != nil:
		return validateHTTPRoute(expose.HTTPRoute, path.Child("httpRoute"))
	}
	path = path.Child("ingress")
	errs := validateAnnotations(expose.Ingress.Annotations, path.Child("annotations"))
	if len(expose.Ingress.Hosts) == 0 {
		errs = append(errs, field.Required(path.Child("hosts"), "without a host nobody reaches the instance through the Ingress"))
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

// inExpose returns the field of spec.expose.ingress for one below hosts, as an Ingress names it below its rules.
func inExpose(rest string) string {
	return strings.TrimSuffix(strings.Replace(rest, ".http.paths[", ".paths[", 1), ".path")
}
