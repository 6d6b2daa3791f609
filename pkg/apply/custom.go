package apply

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// difference returns the patch that changes the live object to the declaration, and the type of the
// patch. The patch is empty if the object is as declared. The API server supports no strategic merge
// patches of custom resources.
func difference(live client.Object, last, declared []byte) (map[string]any, types.PatchType, error) {
	if _, _, err := scheme.Scheme.ObjectKinds(live); err == nil {
		patch, err := threeWay(live, last, declared)
		return patch, types.StrategicMergePatchType, err
	}
	patch, err := replacing(live, last, declared)
	return patch, types.MergePatchType, err
}

// mergePatch returns the JSON merge patch that changes the stored object to the declaration. It
// replaces a list as a whole if a declared field of an element differs. Other fields of elements
// can be defaults, which are no difference.
func mergePatch(was, is, stored map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range was {
		_, isStored := stored[key]
		if _, remains := is[key]; isStored && !remains {
			patch[key] = nil
		}
	}

	for key, declared := range is {
		fields, isObject := declared.(map[string]any)
		storedFields, isStored := stored[key].(map[string]any)
		before, _ := was[key].(map[string]any)
		if isObject && isStored {
			if inner := mergePatch(before, fields, storedFields); len(inner) > 0 {
				patch[key] = inner
			}
		} else if !holds(was[key], declared, stored[key]) {
			patch[key] = declared
		}
	}

	return patch
}

// holds reports whether a stored value has all declared fields, and no field that was declared
// before and is no longer declared. Additional list elements are not allowed.
func holds(was, is, stored any) bool {
	switch is := is.(type) {
	case map[string]any:
		before, _ := was.(map[string]any)
		fields, ok := stored.(map[string]any)
		return ok && len(mergePatch(before, is, fields)) == 0
	case []any:
		before, _ := was.([]any)
		elements, ok := stored.([]any)
		if !ok || len(elements) != len(is) {
			return false
		}

		for i, element := range is {
			var old any
			if i < len(before) {
				old = before[i]
			}
			if !holds(old, element, elements[i]) {
				return false
			}
		}

		return true
	}
	return reflect.DeepEqual(is, stored)
}
