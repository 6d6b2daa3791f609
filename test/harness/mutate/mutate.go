// Package mutate finds values to which an object can be changed, for every field of a schema. It
// refers to no field by name, so new fields need no change here.
//
// A schema alone does not decide which values are valid: CEL rules and admission restrict them
// further. Therefore each field has candidates, and the caller checks which of them the API server
// accepts.
package mutate

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// Field is a field of a schema.
type Field struct {
	// Path is the path of the field, for example ports[0].name.
	Path string
	// Candidates are objects in which the field differs from the original object, the most likely
	// valid first.
	Candidates iter.Seq[map[string]any]
}

// Pool has the values to try if the schema does not list the allowed values.
type Pool struct {
	// Strings are string values. Keys are keys of maps.
	Strings, Keys []string
	// Required are values for the required fields next to a field. The nearest one is often an
	// operator that decides whether the field is allowed.
	Required []string
}

// Fields returns all fields of the schema of an object that can be changed, in the order of their
// paths. It omits fields with only one value and fields that a rule forbids. Fields that exclude a
// field of the object are set in others: Fields also tries values there.
func Fields(schema *apiextensionsv1.JSONSchemaProps, object map[string]any, pool Pool, others ...map[string]any) []Field {
	w := &walker{pool: pool, base: object, others: others}
	w.walk(schema, nil)
	slices.SortFunc(w.fields, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
	return w.fields
}

// step is one step from an object to a field: a property, an element of a list, or a key of a map.
type step struct {
	schema *apiextensionsv1.JSONSchemaProps // of the parent of the field
	key    any                              // string or int
}

type walker struct {
	pool   Pool
	base   map[string]any
	others []map[string]any
	fields []Field
}

func (w *walker) walk(schema *apiextensionsv1.JSONSchemaProps, path []step) {
	to := func(key any) []step { return append(slices.Clone(path), step{schema, key}) }
	switch {
	case len(schema.Properties) > 0:
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			property := schema.Properties[name]
			if !refused(schema, name) && len(property.Enum) != 1 {
				w.walk(&property, to(name))
			}
		}
	case schema.Type == "array" && schema.Items != nil && schema.Items.Schema != nil:
		w.list(schema, path)
		w.walk(schema.Items.Schema, to(0))
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		w.leaf(path, func() (out []any) {
			for _, key := range w.pool.Keys {
				for _, value := range w.scalars(schema.AdditionalProperties.Schema) {
					out = append(out, map[string]any{key: value})
				}
			}
			return out
		}())
	default:
		w.leaf(path, w.scalars(schema))
	}
}

// refused reports whether a rule of an object forbids a property.
func refused(schema *apiextensionsv1.JSONSchemaProps, name string) bool {
	return slices.ContainsFunc(schema.XValidations, func(rule apiextensionsv1.ValidationRule) bool {
		return strings.ReplaceAll(rule.Rule, " ", "") == "!has(self."+name+")"
	})
}

// list adds changes of a whole list if it has at least two elements in the object: the last element
// removed, the order reversed, and no elements.
func (w *walker) list(schema *apiextensionsv1.JSONSchemaProps, path []step) {
	value, found := get(w.base, path)
	elements, isList := value.([]any)
	if !found || !isList || len(elements) < 2 {
		return
	}
	backwards := slices.Clone(elements)
	slices.Reverse(backwards)
	add := func(name string, changed []any) {
		w.fields = append(w.fields, Field{
			Path: name + " of " + w.name(path), Candidates: slices.Values([]map[string]any{set(w.base, path, changed)}),
		})
	}
	add("less", elements[:len(elements)-1])
	add("order", backwards)
	if ptr.Deref(schema.MinItems, 0) == 0 {
		add("none", []any{})
	}
}

// scalars returns values for a schema that is neither an object nor a list.
func (w *walker) scalars(schema *apiextensionsv1.JSONSchemaProps) (out []any) {
	switch {
	case len(schema.Enum) > 0:
		for _, raw := range schema.Enum {
			var value any
			if json.Unmarshal(raw.Raw, &value) == nil {
				out = append(out, value)
			}
		}
	case schema.Type == "boolean":
		out = []any{true, false}
	case schema.Type == "integer" || schema.Type == "number":
		small, nodePorts := []any{int64(1), int64(2), int64(7), int64(9443)}, []any{int64(30080), int64(30081)}
		if isPort := schema.Maximum != nil && *schema.Maximum == math.MaxUint16; isPort {
			out = slices.Concat(nodePorts, small)
		} else {
			out = small
		}
		for _, bound := range []*float64{schema.Minimum, schema.Maximum} {
			if bound != nil {
				out = append(out, int64(*bound))
			}
		}
	default: // a string, or an int-or-string
		if schema.XIntOrString {
			out = append(out, int64(1), int64(2))
		}
		for _, text := range w.pool.Strings {
			if schema.MaxLength == nil || int64(len(text)) <= *schema.MaxLength {
				out = append(out, text)
			}
		}
	}
	return out
}

// leaf adds a field with these values.
func (w *walker) leaf(path []step, values []any) {
	before, had := get(w.base, path)
	w.fields = append(w.fields, Field{Path: w.name(path), Candidates: func(yield func(map[string]any) bool) {
		add := func(object map[string]any) bool {
			now, found := get(object, path)
			return found == had && (!had || same(before, now)) || yield(object)
		}
		_ = w.alone(path, values, add) && w.elsewhere(path, values, add) && w.without(path, add) && w.besides(path, values, add)
	}})
}

// elsewhere tries the values in the other objects that have the field.
func (w *walker) elsewhere(path []step, values []any, add func(map[string]any) bool) bool {
	for _, other := range w.others {
		if _, found := get(other, path); !found {
			continue
		}
		for _, value := range values {
			if !add(set(other, path, value)) {
				return false
			}
		}
	}
	return true
}

// fewValues is the number of values to try if the other fields of the parent matter more than the
// value.
const fewValues = 4

// alone tries the values in the base object, then with each text for required fields on the path,
// and then with parents that have only their required fields. Fields can exclude each other.
func (w *walker) alone(path []step, values []any, add func(map[string]any) bool) bool {
	for _, value := range values {
		if !add(set(w.base, path, value)) {
			return false
		}
	}
	for _, text := range w.pool.Required {
		for _, value := range values[:min(len(values), fewValues)] {
			object := put(copyOf(w.base), path, value, text).(map[string]any)
			if !reflect.DeepEqual(object, set(w.base, path, value)) && !add(object) {
				return false
			}
		}
	}
	for depth := len(path) - 1; depth > 0; depth-- {
		if len(path[depth].schema.Properties) == 0 {
			continue
		}
		for _, value := range values[:min(len(values), fewValues)] {
			if !add(set(set(w.base, path[:depth], minimal(path[depth].schema, w.pool)), path, value)) {
				return false
			}
		}
	}
	return true
}

// besides tries the values together with each value of the other fields of the parents, because one
// field can require another.
func (w *walker) besides(path []step, values []any, add func(map[string]any) bool) bool {
	for depth := len(path) - 1; depth >= 0; depth-- {
		for _, value := range values {
			if !w.beside(path, depth, value, add) {
				return false
			}
		}
		if depth < len(path)-3 {
			break // fields further away do not depend on it
		}
	}
	return true
}

// beside tries one value together with each value of the other fields of one parent.
func (w *walker) beside(path []step, depth int, value any, add func(map[string]any) bool) bool {
	holder := path[depth].schema
	for _, sibling := range slices.Sorted(maps.Keys(holder.Properties)) {
		property := holder.Properties[sibling]
		var others []any
		switch {
		case sibling == path[depth].key || property.Type == "array":
			continue
		case len(property.Properties) > 0:
			others = []any{minimal(&property, w.pool)}
			if len(property.Required) > 0 {
				for _, text := range w.pool.Strings {
					others = append(others, minimal(&property, Pool{Strings: []string{text}}))
				}
			}
		case property.Type == "object":
			continue
		default:
			others = w.scalars(&property)
		}
		beside := append(slices.Clone(path[:depth]), step{holder, sibling})
		for _, other := range others {
			if !add(set(set(w.base, beside, other), path, value)) {
				return false
			}
		}
	}
	return true
}

// without tries to remove the field or one of its parents.
func (w *walker) without(path []step, add func(map[string]any) bool) bool {
	for depth := len(path); depth > 0; depth-- {
		if _, isName := path[depth-1].key.(string); isName && !add(remove(w.base, path[:depth])) {
			return false
		}
	}
	return true
}

// minimal returns the smallest value that has all fields that its schema requires.
func minimal(schema *apiextensionsv1.JSONSchemaProps, pool Pool) any {
	switch {
	case len(schema.Properties) > 0:
		out := map[string]any{}
		for _, name := range schema.Required {
			property := schema.Properties[name]
			out[name] = minimal(&property, pool)
		}
		return out
	case schema.Type == "array":
		if schema.Items == nil || schema.Items.Schema == nil {
			return []any{}
		}
		return []any{minimal(schema.Items.Schema, pool)}
	case schema.AdditionalProperties != nil:
		return map[string]any{}
	}
	if values := (&walker{pool: pool}).scalars(schema); len(values) > 0 {
		return values[0]
	}
	return ""
}

func (w *walker) name(path []step) string {
	var out strings.Builder
	for _, step := range path {
		switch key := step.key.(type) {
		case int:
			_, _ = fmt.Fprintf(&out, "[%d]", key)
		case string:
			if out.Len() > 0 {
				out.WriteString(".")
			}
			out.WriteString(key)
		}
	}
	return out.String()
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
