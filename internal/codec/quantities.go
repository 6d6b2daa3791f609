package codec

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/pkg/bounds"
)

// maxQuantities is the maximum number of quantities in a list of resources.
const maxQuantities = 32

// Quantities returns the errors of the quantities in a v1alpha2 spec, without computing them.
func Quantities(spec map[string]any, path *field.Path) field.ErrorList {
	errs := resourceQuantities(spec, path)
	monitoring, _ := spec["monitoring"].(map[string]any)
	errs = append(errs, resourceQuantities(monitoring, path.Child("monitoring"))...)
	for _, name := range []string{"initContainers", "sidecars"} {
		for i, container := range elementsOf(spec[name]) {
			errs = append(errs, resourceQuantities(container, path.Child(name).Index(i))...)
		}
	}

	for i, volume := range elementsOf(spec["volumes"]) {
		emptyDir, _ := volume["emptyDir"].(map[string]any)
		if limit := emptyDir["sizeLimit"]; limit != nil && !bounds.IsQuantity(limit) {
			at := path.Child("volumes").Index(i).Child("emptyDir", "sizeLimit")
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, bounds.QuantityRule))
		}
	}

	return errs
}

// elementsOf returns the objects of a list at their original indexes.
func elementsOf(value any) []map[string]any {
	list, _ := value.([]any)
	objects := make([]map[string]any, len(list))
	for i := range list {
		objects[i], _ = list[i].(map[string]any)
	}
	return objects
}

// resourceQuantities returns the errors of the quantities in a value with resources.
func resourceQuantities(value map[string]any, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	resources, _ := value["resources"].(map[string]any)
	for _, name := range []string{"limits", "requests"} {
		list, _ := resources[name].(map[string]any)
		at := path.Child("resources", name)
		if len(list) > maxQuantities {
			errs = append(errs, field.TooMany(at, len(list), maxQuantities))
			continue
		}

		for _, key := range slices.Sorted(maps.Keys(list)) {
			if !bounds.IsQuantity(list[key]) {
				errs = append(errs, field.Invalid(at.Key(key), field.OmitValueType{}, bounds.QuantityRule))
			}
		}
	}

	return errs
}
