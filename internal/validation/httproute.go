package validation

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const (
	// maxParents is the maximum number of parentRefs, as in the schema.
	maxParents = 8
	// maxHosts is the maximum number of host names of an HTTPRoute or an Ingress, as in the schema.
	maxHosts = 16
)

// sizeOfHTTPRoute bounds the lists of an HTTPRoute.
func sizeOfHTTPRoute(route *v1alpha2.HTTPRoute, path *field.Path) field.ErrorList {
	errs := atMost(len(route.ParentRefs), maxParents, path.Child("parentRefs"))
	return append(errs, atMost(len(route.Hostnames), maxHosts, path.Child("hostnames"))...)
}

// validateHTTPRoute validates an HTTPRoute. The API server can do so only on clusters with the
// Gateway API.
func validateHTTPRoute(route *v1alpha2.HTTPRoute, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(route.ParentRefs) == 0 {
		errs = append(errs, field.Required(path.Child("parentRefs"), "an HTTPRoute requires at least one Gateway"))
	}

	for i, parent := range route.ParentRefs {
		at := path.Child("parentRefs").Index(i)
		if parent.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		}

		for _, given := range []struct {
			field, name string
			check       func(string) []string
		}{
			{"name", parent.Name, nameOfObject},
			{"namespace", parent.Namespace, utilvalidation.IsDNS1123Label},
			{"sectionName", parent.SectionName, nameOfObject},
		} {
			if given.name == "" {
				continue
			}
			for _, message := range given.check(given.name) {
				errs = append(errs, field.Invalid(at.Child(given.field), bounded(given.name), message))
			}
		}

		if parent.Port != nil {
			for _, message := range utilvalidation.IsValidPortNum(int(*parent.Port)) {
				errs = append(errs, field.Invalid(at.Child("port"), *parent.Port, message))
			}
		}
	}

	for i, name := range route.Hostnames {
		if at := path.Child("hostnames").Index(i); name == "" {
			errs = append(errs, field.Required(at, ""))
		} else if len(name) > utilvalidation.DNS1123SubdomainMaxLength {
			errs = append(errs, field.TooLong(at, "", utilvalidation.DNS1123SubdomainMaxLength))
		}
	}
	return errs
}

func nameOfObject(name string) []string { return apivalidation.NameIsDNSSubdomain(name, false) }

// withoutPlace removes the field from an API server's message about a custom resource. The error
// already has it.
func withoutPlace(message, child string) string {
	return strings.Replace(message, child+" in body ", "", 1)
}
