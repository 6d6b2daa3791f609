package validation

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// largestQuantity is more than any real quantity, and cheap to compute with.
const largestQuantity = 1e36

const tooLarge = "must be less than or equal to 1e36"

// validateResources bounds quantities, so that other code can compute with them.
func validateResources(requests, limits corev1.ResourceList, path *field.Path) field.ErrorList {
	errs := validateQuantities(requests, path.Child("requests"))
	return append(errs, validateQuantities(limits, path.Child("limits"))...)
}

func validateQuantities(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		// Comparing or printing the quantity would compute all of its digits.
		if isEndless(list[name]) {
			errs = append(errs, field.Invalid(path.Key(string(name)), field.OmitValueType{}, tooLarge))
		}
	}
	return errs
}

func isEndless(quantity resource.Quantity) bool {
	approximate := quantity.AsApproximateFloat64()
	return math.Abs(approximate) > largestQuantity || math.IsNaN(approximate)
}

// validateTargets requires a resource request for each target of spec.autoscaling. Targets are
// percentages of the request, so an autoscaler without requests never works. Without a request, the
// limit counts as the request.
func validateTargets(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	if spec.Autoscaling == nil {
		return nil
	}

	var errs field.ErrorList
	declared, resources := defaults.Autoscaling(spec), defaults.Resources(spec)
	for _, target := range []struct {
		resource corev1.ResourceName
		name     string
		declared *int32
	}{
		{corev1.ResourceCPU, "targetCPUUtilizationPercentage", declared.TargetCPUUtilizationPercentage},
		{corev1.ResourceMemory, "targetMemoryUtilizationPercentage", declared.TargetMemoryUtilizationPercentage},
	} {
		request, isSet := resources.Requests[target.resource]
		if !isSet {
			request = resources.Limits[target.resource]
		}
		if target.declared != nil && request.AsApproximateFloat64() <= 0 {
			errs = append(errs, field.Required(path.Child("resources", "requests").Key(string(target.resource)), fmt.Sprintf(
				"%s is a percentage of this request; set the request, or remove resources to use the default",
				path.Child("autoscaling", target.name))))
		}
	}

	return errs
}
