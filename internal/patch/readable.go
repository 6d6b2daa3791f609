package patch

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/pkg/bounds"
)

// maxMerged is the length above which pkg/apply replaces a list as a whole.
const maxMerged = 128

// atomicLists have a merge key, but pkg/apply compares and writes them as a whole.
var atomicLists = []string{"topologySpreadConstraints"}

// directives are the values of $patch in a strategic merge patch.
var directives = []any{"merge", "replace", "delete"}

// readable checks a value at a path against its Go type before it is decoded. Decoding a quantity
// can be expensive, and a later merge would lose one of two elements with the same key.
func readable(in reflect.Type, value any, at string) error {
	for in.Kind() == reflect.Pointer {
		in = in.Elem()
	}

	if in == reflect.TypeFor[resource.Quantity]() {
		if value != nil && !bounds.IsQuantity(value) {
			return fmt.Errorf("%s: %s", at, bounds.QuantityRule)
		}
		return nil
	}

	switch value := value.(type) {
	case map[string]any:
		// In order, so that each reconcile reports the same error.
		for _, name := range slices.Sorted(maps.Keys(value)) {
			inner := value[name]
			below, exists := typeOf(in, name)
			if !exists {
				continue // the decoder reports it
			}

			inside := strings.TrimPrefix(at+"."+name, ".")
			if err := readable(below.Type, inner, inside); err != nil {
				return err
			}

			if list, isList := inner.([]any); isList {
				if err := elementsDiffer(list, below, inside); err != nil {
					return err
				}
			}
		}
	case []any:
		if in.Kind() != reflect.Slice {
			return nil
		}
		for i, inner := range value {
			if err := readable(in.Elem(), inner, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	}

	return nil
}

// typeOf returns the field with a JSON name, or the type of the values of a map.
func typeOf(in reflect.Type, name string) (reflect.StructField, bool) {
	if in.Kind() == reflect.Map {
		return reflect.StructField{Type: in.Elem()}, true
	}
	if in.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}

	for _, member := range reflect.VisibleFields(in) {
		if tag, _, _ := strings.Cut(member.Tag.Get("json"), ","); tag == name && name != "" {
			return member, true
		}
	}

	return reflect.StructField{}, false
}

// elementsDiffer returns an error if a list has two elements with the same key of the strategic
// merge, an element without the key, or too many elements.
func elementsDiffer(list []any, in reflect.StructField, at string) error {
	key := in.Tag.Get("patchMergeKey")
	if key == "" || slices.Contains(atomicLists, at[strings.LastIndex(at, ".")+1:]) {
		return nil
	}

	path := field.NewPath(at)
	if len(list) > maxMerged {
		return field.TooMany(path, len(list), maxMerged)
	}

	seen := sets.New[string]()
	for i, element := range list {
		fields, _ := element.(map[string]any)
		value := fmt.Sprint(fields[key])
		switch {
		case fields[key] == nil:
			return field.Required(path.Index(i).Child(key), "")
		case seen.Has(value):
			return field.Duplicate(path.Index(i).Child(key), value)
		}

		seen.Insert(value)
	}

	return nil
}

// misplaced returns the path of the first value of a strategic merge patch that its Go type cannot
// have, or of the first directive that kustomize does not know, or "".
func misplaced(in reflect.Type, value any, at string) string {
	for in.Kind() == reflect.Pointer {
		in = in.Elem()
	}

	switch value := value.(type) {
	case map[string]any:
		if in.Kind() == reflect.Slice {
			return at
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			inside := strings.TrimPrefix(at+"."+name, ".")
			if name == "$patch" && !slices.Contains(directives, value[name]) {
				return inside
			}
			if below, exists := typeOf(in, name); exists {
				if path := misplaced(below.Type, value[name], inside); path != "" {
					return path
				}
			}
		}
	case []any:
		if in.Kind() != reflect.Slice {
			return at
		}
		for i, element := range value {
			if path := misplaced(in.Elem(), element, fmt.Sprintf("%s[%d]", at, i)); path != "" {
				return path
			}
		}
	case nil:
	default:
		hasFields := in.Kind() == reflect.Struct || in.Kind() == reflect.Map || in.Kind() == reflect.Slice
		if hasFields && !reflect.PointerTo(in).Implements(reflect.TypeFor[json.Unmarshaler]()) {
			return at
		}
	}

	return ""
}
