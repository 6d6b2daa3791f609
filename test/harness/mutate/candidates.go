package mutate

import (
	"maps"
	"reflect"
	"slices"
)

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
