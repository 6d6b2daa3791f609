package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// atomicFields are maps that are valid only as a whole. The strategic merge would merge them by
// key, and a selector with one more key selects other Pods.
var atomicFields = [][]string{{"spec", "selector"}, {"spec", "podSelector"}}

// atomicLists are lists whose elements the strategic merge cannot distinguish. It only compares the
// topology key of a spread constraint, and two constraints can have the same key.
var atomicLists = [][]string{{"spec", "template", "spec", "topologySpreadConstraints"}}

// sharedMaps are maps that other clients also write to. If the declaration no longer has such a
// map, only the keys of the last declaration are removed.
var sharedMaps = [][]string{
	{"metadata", "annotations"},
	{"spec", "template", "metadata", "annotations"},
	{"spec", "template", "spec", "nodeSelector"},
}

// keptFields are fields that the API server does not change if a write omits them, with their
// defaults. If such a field is no longer declared, its default is written.
var keptFields = []struct {
	path      []string
	byDefault string
}{
	{[]string{"spec", "ipFamilyPolicy"}, "SingleStack"},
}

// decode returns the last declaration, the current declaration, and the stored object, prepared for
// the merge.
func decode(live client.Object, last, declared []byte) (was, is, stored map[string]any, err error) {
	current, err := json.Marshal(content(live))
	if err != nil {
		return nil, nil, nil, err
	}
	if err := errors.Join(json.Unmarshal(last, &was), json.Unmarshal(declared, &is), json.Unmarshal(current, &stored)); err != nil {
		return nil, nil, nil, err
	}
	// No declaration has finalizers.
	unstructured.RemoveNestedField(was, "metadata", "finalizers")
	unstructured.RemoveNestedField(stored, "metadata", "finalizers")
	// The whole stored value counts as declared before, so the merge removes keys that are no
	// longer declared.
	for _, path := range atomicFields {
		if value, found, err := unstructured.NestedMap(stored, path...); err == nil && found {
			if err := unstructured.SetNestedMap(was, value, path...); err != nil {
				return nil, nil, nil, err
			}
		}
	}
	dropForeign(was, is, stored, "labels")
	dropForeign(was, is, stored, "annotations")
	for _, path := range sharedMaps {
		_, before, err1 := unstructured.NestedMap(was, path...)
		_, now, err2 := unstructured.NestedMap(is, path...)
		if err1 == nil && err2 == nil && before && !now {
			if err := unstructured.SetNestedMap(is, map[string]any{}, path...); err != nil {
				return nil, nil, nil, err
			}
		}
	}
	for _, field := range keptFields {
		_, before, err1 := unstructured.NestedFieldNoCopy(was, field.path...)
		_, now, err2 := unstructured.NestedFieldNoCopy(is, field.path...)
		if err1 == nil && err2 == nil && before && !now {
			if err := unstructured.SetNestedField(is, field.byDefault, field.path...); err != nil {
				return nil, nil, nil, err
			}
		}
	}
	return was, is, stored, nil
}

// dropForeign removes labels or annotations from the stored object that were never declared. There
// can be many, and no merge changes them.
func dropForeign(was, is, stored map[string]any, field string) {
	before, _, _ := unstructured.NestedFieldNoCopy(was, "metadata", field)
	now, _, _ := unstructured.NestedFieldNoCopy(is, "metadata", field)
	live, _, _ := unstructured.NestedFieldNoCopy(stored, "metadata", field)
	declaredBefore, _ := before.(map[string]any)
	declaredNow, _ := now.(map[string]any)
	if all, ok := live.(map[string]any); ok {
		maps.DeleteFunc(all, func(key string, _ any) bool {
			_, inBefore := declaredBefore[key]
			_, inNow := declaredNow[key]
			return !inBefore && !inNow
		})
	}
}

// threeWay returns the strategic merge patch that changes the live object to the declaration, or
// nil if it is as declared.
func threeWay(live client.Object, last, declared []byte) ([]byte, error) {
	was, is, stored, err := decode(live, last, declared)
	if err != nil {
		return nil, err
	}
	lists, err := takeAtomicLists(was, is, stored)
	if err != nil {
		return nil, err
	}
	patch, err := merge(live, was, is, stored)
	if err != nil || patch == nil && len(lists) == 0 {
		return nil, err
	}
	if patch == nil {
		patch = map[string]any{}
	}
	for _, list := range lists {
		if err := unstructured.SetNestedField(patch, list.value, list.path...); err != nil {
			return nil, err
		}
	}
	return json.Marshal(patch)
}

// replacing returns the JSON merge patch that changes the live object to the declaration. It
// replaces each list that differs, including elements of other clients.
func replacing(live client.Object, last, declared []byte) ([]byte, error) {
	was, is, stored, err := decode(live, last, declared)
	if err != nil {
		return nil, err
	}
	return jsonMergePatch(was, is, stored)
}

func jsonMergePatch(was, is, stored map[string]any) ([]byte, error) {
	last, err1 := json.Marshal(was)
	declared, err2 := json.Marshal(is)
	current, err3 := json.Marshal(stored)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(last, declared, current)
}

// errNotMerged is the error of a merge that is impossible, because a list element has lost its key
// field.
var errNotMerged = errors.New("failed to merge")

// merge returns the strategic merge patch of the three objects, or nil if it would change nothing.
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
	patch, err := strategicpatch.CreateThreeWayMergePatch(last, declared, current, meta, true)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotMerged, err)
	}
	if string(patch) == "{}" {
		return nil, nil
	}
	// The patch always has fields with the patch strategy "replace", such as the selector of a
	// PodDisruptionBudget. Check whether the patch changes anything.
	patched, err := strategicpatch.StrategicMergePatchUsingLookupPatchMeta(current, patch, meta)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotMerged, err)
	}
	if jsonpatch.Equal(current, patched) {
		return nil, nil
	}
	var out map[string]any
	return out, json.Unmarshal(patch, &out)
}

// replacement is the value of an atomic list in a patch.
type replacement struct {
	path  []string
	value any
}

// takeAtomicLists removes the atomic lists from the three objects, and returns the replacements of
// the lists that differ.
func takeAtomicLists(was, is, stored map[string]any) ([]replacement, error) {
	var out []replacement
	for _, path := range atomicLists {
		var lists [3][]any
		for i, object := range []map[string]any{was, is, stored} {
			list, _, err := unstructured.NestedSlice(object, path...)
			if err != nil {
				return nil, err
			}
			lists[i] = list
			unstructured.RemoveNestedField(object, path...)
		}
		before, declared, current := lists[0], lists[1], lists[2]
		switch {
		case reflect.DeepEqual(declared, current):
		case len(declared) > 0:
			out = append(out, replacement{path, append([]any{map[string]any{"$patch": "replace"}}, declared...)})
		case len(before) > 0 && len(current) > 0:
			out = append(out, replacement{path, nil})
		}
	}
	return out, nil
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
	if object["data"] == nil { // a ControllerRevision without its data encodes it as null, which a patch would write
		delete(object, "data")
	}
	return json.Marshal(object)
}
