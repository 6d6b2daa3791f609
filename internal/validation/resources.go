package validation

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// largestQuantity is more than any real quantity, and cheap to compute with.
const largestQuantity = 1e36

const tooLarge = "must not be more than 1e36; lower it"

// validateResources bounds quantities, so that other code can compute with them.
func validateResources(resources *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	if resources == nil {
		return nil
	}
	errs := validateQuantities(resources.Requests, path.Child("requests"))
	return append(errs, validateQuantities(resources.Limits, path.Child("limits"))...)
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
