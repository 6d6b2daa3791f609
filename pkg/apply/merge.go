package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// atomicFields are valid as a whole only: a merged selector selects other Pods.
var atomicFields = [][]string{{"spec", "selector"}, {"spec", "podSelector"}}

// spreadConstraints is a list whose elements the strategic merge cannot distinguish. It only
// compares the topology key of a constraint, and two constraints can have the same key.
var spreadConstraints = []string{"spec", "template", "spec", "topologySpreadConstraints"}

// undeclared has fields that a write must set if they are no longer declared. Other clients also
// write to the maps, so only the keys of the last declaration are removed. The API server does not
// change the other fields if a write omits them, so their default is written.
var undeclared = []struct {
	path  []string
	value any
}{
	{[]string{"metadata", "annotations"}, map[string]any{}},
	{[]string{"spec", "template", "metadata", "annotations"}, map[string]any{}},
	{[]string{"spec", "template", "spec", "nodeSelector"}, map[string]any{}},
	{[]string{"spec", "ipFamilyPolicy"}, "SingleStack"},
}

// decode prepares the last and the current declaration and the stored object.
func decode(live client.Object, last, declared []byte) (was, is, stored map[string]any, err error) {
	current, err := json.Marshal(content(live))
	if err != nil {
		return nil, nil, nil, err
	}

	err = errors.Join(json.Unmarshal(last, &was), json.Unmarshal(declared, &is), json.Unmarshal(current, &stored))
	if err != nil {
		return nil, nil, nil, err
	}

	// No declaration has finalizers.
	unstructured.RemoveNestedField(was, "metadata", "finalizers")
	unstructured.RemoveNestedField(stored, "metadata", "finalizers")

	// The stored value counts as declared, so the merge removes keys that are not declared now.
	for _, path := range atomicFields {
		if value, exists, err := unstructured.NestedMap(stored, path...); err == nil && exists {
			if err := unstructured.SetNestedMap(was, value, path...); err != nil {
				return nil, nil, nil, err
			}
		}
	}

	dropForeign(was, is, stored, "labels")
	dropForeign(was, is, stored, "annotations")
	for _, field := range undeclared {
		_, before, _ := unstructured.NestedFieldNoCopy(was, field.path...)
		_, remains, _ := unstructured.NestedFieldNoCopy(is, field.path...)
		if before && !remains {
			if err := unstructured.SetNestedField(is, field.value, field.path...); err != nil {
				return nil, nil, nil, err
			}
		}
	}

	return was, is, stored, nil
}

// dropForeign removes labels or annotations that were never declared. There can be many.
func dropForeign(was, is, stored map[string]any, field string) {
	before, _, _ := unstructured.NestedMap(was, "metadata", field)
	declared, _, _ := unstructured.NestedMap(is, "metadata", field)
	all, _, _ := unstructured.NestedFieldNoCopy(stored, "metadata", field)
	live, _ := all.(map[string]any)
	maps.DeleteFunc(live, func(key string, _ any) bool {
		_, wasDeclared := before[key]
		_, isDeclared := declared[key]
		return !wasDeclared && !isDeclared
	})
}

// threeWay returns the strategic merge patch, which is empty if the object is as declared.
func threeWay(live client.Object, last, declared []byte) (map[string]any, error) {
	was, is, stored, err := decode(live, last, declared)
	if err != nil {
		return nil, err
	}

	before, constraints, current := takeConstraints(was), takeConstraints(is), takeConstraints(stored)
	patch, err := merge(live, was, is, stored)
	if err != nil {
		return nil, err
	}

	switch {
	case len(constraints) > 0 && !reflect.DeepEqual(constraints, current):
		replacement := append([]any{map[string]any{"$patch": "replace"}}, constraints...)
		err = unstructured.SetNestedField(patch, replacement, spreadConstraints...)
	case len(constraints) == 0 && len(before) > 0 && len(current) > 0:
		err = unstructured.SetNestedField(patch, nil, spreadConstraints...)
	}

	return patch, err
}

func takeConstraints(object map[string]any) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, spreadConstraints...)
	unstructured.RemoveNestedField(object, spreadConstraints...)
	constraints, _ := value.([]any)
	return constraints
}

// replacing returns the JSON merge patch that changes the live object to the declaration. It
// replaces each list that differs, including elements of other clients.
func replacing(live client.Object, last, declared []byte) (map[string]any, error) {
	was, is, stored, err := decode(live, last, declared)
	if err != nil {
		return nil, err
	}
	return mergePatch(was, is, stored), nil
}

// errNotMerged: a list element has lost its key field, for example.
var errNotMerged = errors.New("failed to merge")

// merge returns the strategic merge patch, which is empty if it would change nothing.
func merge(live client.Object, was, is, stored map[string]any) (map[string]any, error) {
	if hasLongList(was) || hasLongList(is) || hasLongList(stored) {
		return nil, fmt.Errorf("%w: a list has more than %d elements", errNotMerged, maxElements)
	}

	last, err1 := json.Marshal(was)
	declared, err2 := json.Marshal(is)
	current, err3 := json.Marshal(stored)
	meta, err4 := strategicpatch.NewPatchMetaFromStruct(live)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}

	raw, err := strategicpatch.CreateThreeWayMergePatch(last, declared, current, meta, true)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotMerged, err)
	}

	// The patch always has fields with the patch strategy "replace", such as the selector of a
	// PodDisruptionBudget. Check whether the patch changes anything.
	patched, err := strategicpatch.StrategicMergePatchUsingLookupPatchMeta(current, raw, meta)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotMerged, err)
	}

	// Almost all children are as declared, and a comparison of fields allocates much.
	patch := map[string]any{}
	if bytes.Equal(current, patched) || jsonpatch.Equal(current, patched) {
		return patch, nil
	}

	err = json.Unmarshal(raw, &patch)
	return patch, err
}

// declaration encodes the part of a child that is compared with the stored child. It omits the
// status, the kind, and the content of an immutable object: that content cannot change, and a large
// ConfigMap would not fit into the annotation.
func declaration(child client.Object) ([]byte, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(content(child))
	if err != nil {
		return nil, err
	}
	for _, field := range []string{"apiVersion", "kind", "status"} {
		delete(object, field)
	}

	dropNulls(object)
	return json.Marshal(object)
}

// dropNulls removes null fields. A required field that was never set is null.
func dropNulls(object map[string]any) {
	for key, value := range object {
		if value == nil {
			delete(object, key)
		} else if inner, ok := value.(map[string]any); ok {
			dropNulls(inner)
		}
	}
}

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
