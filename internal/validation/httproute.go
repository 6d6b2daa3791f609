package validation

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// maxParents is how many parentRefs the schema allows.
const maxParents = 8

// sizeOfHTTPRoute bounds what is worked on of an HTTPRoute.
func sizeOfHTTPRoute(route *v1alpha2.HTTPRoute, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(route.ParentRefs); n > maxParents {
		errs = append(errs, field.TooMany(path.Child("parentRefs"), n, maxParents))
	}
	if n := len(route.Hostnames); n > maxHosts {
		errs = append(errs, field.TooMany(path.Child("hostnames"), n, maxHosts))
	}
	return errs
}

// validateHTTPRoute looks at what has to be right before the API server can judge, which it cannot everywhere.
func validateHTTPRoute(route *v1alpha2.HTTPRoute, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(route.ParentRefs) == 0 {
		errs = append(errs, field.Required(path.Child("parentRefs"), "without a Gateway nobody reaches the instance through the HTTPRoute"))
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

// withoutPlace takes from a message of the API server where in the HTTPRoute a value is: the schema of a custom resource says it again.
func withoutPlace(message, child string) string {
	return strings.Replace(message, child+" in body ", "", 1)
}
