package mutate

import (
	"fmt"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// step is one step from an object to a field: a property, an element of a list, or a key of a map.
type step struct {
	schema *apiextensionsv1.JSONSchemaProps // of the parent of the field
	key    any                              // string or int
}

// get returns the value at a path of an object, and whether it exists.
func get(object any, path []step) (any, bool) {
	keys := make([]any, 0, len(path))
	for _, step := range path {
		keys = append(keys, step.key)
	}
	return At(object, keys)
}

// At returns the value at a path of a decoded JSON value, and whether it exists. A key is a string
// for a map or an int for a list.
func At(value any, path []any) (any, bool) {
	for _, key := range path {
		switch key := key.(type) {
		case string:
			fields, ok := value.(map[string]any)
			if !ok {
				return nil, false
			}
			if value, ok = fields[key]; !ok {
				return nil, false
			}
		case int:
			elements, ok := value.([]any)
			if !ok || key >= len(elements) {
				return nil, false
			}
			value = elements[key]
		}
	}
	return value, true
}

// set returns a copy of an object with a value at a path. It creates missing parents with the
// fields that their schemas require.
func set(object map[string]any, path []step, value any) map[string]any {
	return put(copyOf(object), path, value, "x").(map[string]any)
}

// put sets a value in an object. Required strings of missing parents get the text required.
func put(object any, path []step, value any, required string) any {
	if len(path) == 0 {
		return copyOf(value)
	}
	switch key := path[0].key.(type) {
	case string:
		fields, ok := object.(map[string]any)
		if !ok {
			fields, _ = minimal(path[0].schema, Pool{Strings: []string{required}}).(map[string]any)
		}
		fields[key] = put(fields[key], path[1:], value, required)
		return fields
	case int:
		elements, _ := object.([]any)
		if len(elements) == 0 {
			elements = []any{minimal(path[0].schema.Items.Schema, Pool{Strings: []string{required}})}
		}
		elements[key] = put(elements[key], path[1:], value, required)
		return elements
	}
	return object
}

// remove returns a copy of an object without the value at a path.
func remove(object map[string]any, path []step) map[string]any {
	out := copyOf(object)
	parent, found := get(out, path[:len(path)-1])
	if fields, ok := parent.(map[string]any); found && ok {
		delete(fields, path[len(path)-1].key.(string))
	}
	return out
}

// copyOf copies decoded JSON. As in an object that a client decodes, an integer is an int64.
func copyOf[T any](value T) T {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("no JSON: %v", err))
	}
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(fmt.Sprintf("no JSON: %v", err))
	}
	return out
}

func same(a, b any) bool { return reflect.DeepEqual(copyOf(a), copyOf(b)) }
