package apply

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// difference returns the patch that makes the live object what is declared, nil where it is already, and of which type it is. Of custom
// resources the API server knows no strategic merge.
func difference(live client.Object, last, declared []byte) ([]byte, types.PatchType, error) {
	if _, _, err := scheme.Scheme.ObjectKinds(live); err == nil {
		patch, err := threeWay(live, last, declared)
		return patch, types.StrategicMergePatchType, err
	}
	patch, err := ofCustom(live, last, declared)
	return patch, types.MergePatchType, err
}

// ofCustom returns the JSON merge patch that makes a live custom resource what is declared, nil where it is already. A list in which
// something differs is replaced as a whole.
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

// settle puts what is declared in the place of every list that holds it, so that the merge finds no difference. The schema of a custom
// resource gives the elements of lists defaults, those of a later version more of them, and a merge patch replaces whole lists.
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

// holds reports whether a stored value has all that is declared, and nothing of what was declared before and is no more. What was never
// declared it may have, but for elements of lists.
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
