package apply

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// difference returns the patch that changes the live object to the declaration, and the type of the
// patch. The patch is nil if the object is as declared. The API server supports no strategic merge
// patches of custom resources.
func difference(live client.Object, last, declared []byte) ([]byte, types.PatchType, error) {
	if _, _, err := scheme.Scheme.ObjectKinds(live); err == nil {
		patch, err := threeWay(live, last, declared)
		return patch, types.StrategicMergePatchType, err
	}
	patch, err := ofCustom(live, last, declared)
	return patch, types.MergePatchType, err
}

// ofCustom returns the JSON merge patch of a custom resource, or nil if the resource is as
// declared. The patch replaces a list as a whole if one element differs.
func ofCustom(live client.Object, last, declared []byte) ([]byte, error) {
	was, is, stored, err := decode(live, last, declared)
	if err != nil {
		return nil, err
	}
	settle(was, is, stored)
	patch, err := jsonMergePatch(was, is, stored)
	if err != nil || string(patch) == "{}" {
		return nil, err
	}
	return patch, nil
}

// settle replaces each stored list that holds the declared list by the declared list, so the merge
// finds no difference. The schema of a custom resource adds defaults to list elements, and a merge
// patch replaces whole lists. Without settle, each default would be a difference.
func settle(was, is, stored map[string]any) {
	for key, declared := range is {
		switch declared := declared.(type) {
		case map[string]any:
			before, _ := was[key].(map[string]any)
			if live, ok := stored[key].(map[string]any); ok {
				settle(before, declared, live)
			}
		case []any:
			if holds(was[key], declared, stored[key]) {
				stored[key] = declared
			}
		}
	}
}

// holds reports whether a stored value has all declared fields, and no field that was declared
// before and is no longer declared. Fields that were never declared are allowed. Additional list
// elements are not.
func holds(was, is, stored any) bool {
	switch is := is.(type) {
	case map[string]any:
		before, _ := was.(map[string]any)
		live, ok := stored.(map[string]any)
		if !ok {
			return false
		}
		for key := range before {
			_, remains := is[key]
			if _, isStored := live[key]; isStored && !remains {
				return false
			}
		}
		for key, value := range is {
			if !holds(before[key], value, live[key]) {
				return false
			}
		}
		return true
	case []any:
		before, _ := was.([]any)
		live, ok := stored.([]any)
		if !ok || len(live) != len(is) {
			return false
		}
		for i, value := range is {
			var old any
			if i < len(before) {
				old = before[i]
			}
			if !holds(old, value, live[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(is, stored)
}
