package validation

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// largestQuantity is far beyond what there is of anything, and cheap to compute with.
const largestQuantity = 1e36

// validateResources holds what the API server demands of the resources of a container.
func validateResources(resources *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	if resources == nil {
		return nil
	}
	errs := validateQuantities(resources.Requests, path.Child("requests"))
	errs = append(errs, validateQuantities(resources.Limits, path.Child("limits"))...)
	for _, name := range sortedKeys(byString(resources.Requests)) {
		at := path.Child("requests").Key(name)
		request := resources.Requests[corev1.ResourceName(name)]
		limit, limited := resources.Limits[corev1.ResourceName(name)]
		switch {
		case isEndless(request), isEndless(limit):
		case limited && request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(at, request.String(),
				fmt.Sprintf("must not be more than the limit of %s; raise the limit or lower the request", limit.String())))
		case !overcommits(name) && (!limited || request.Cmp(limit) != 0):
			errs = append(errs, field.Invalid(at, request.String(), "must be the same in requests and limits, because it cannot be overcommitted"))
		}
	}
	return errs
}

func validateQuantities(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedKeys(byString(list)) {
		at := path.Key(name)
		quantity := list[corev1.ResourceName(name)]
		// To compare or print it would be to compute it.
		if isEndless(quantity) {
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, "must not be more than 1e36; lower it"))
			continue
		}
		if quantity.Sign() < 0 {
			errs = append(errs, field.Invalid(at, quantity.String(), "must not be negative"))
		}
		for _, message := range utilvalidation.IsQualifiedName(name) {
			errs = append(errs, field.Invalid(at, name, message))
		}
		if !strings.Contains(name, "/") && !isStandard(name) {
			errs = append(errs, field.Invalid(at, name,
				"is no resource of a container; write cpu, memory, ephemeral-storage, hugepages-<size>, or a name with a domain"))
		}
	}
	return errs
}

func isEndless(quantity resource.Quantity) bool {
	approximate := quantity.AsApproximateFloat64()
	return math.Abs(approximate) > largestQuantity || math.IsNaN(approximate)
}

func isStandard(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(name, corev1.ResourceHugePagesPrefix)
}

// overcommits reports whether more of a resource may be promised than there is.
func overcommits(name string) bool {
	return isStandard(name) && !strings.HasPrefix(name, corev1.ResourceHugePagesPrefix)
}

func byString[V any](list map[corev1.ResourceName]V) map[string]V {
	out := make(map[string]V, len(list))
	for name, value := range list {
		out[string(name)] = value
	}
	return out
}
