package patch

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/pkg/bounds"
)

// maxMerged is the maximum length of a list that pkg/apply merges by element. It replaces
// longer lists as a whole.
const maxMerged = 128

// atomicLists are lists that pkg/apply compares and writes as a whole, although Kubernetes
// defines a merge key for them.
var atomicLists = []string{"topologySpreadConstraints"}

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
		for name, inner := range value {
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

// typeOf returns the field of a type with a JSON name. For a map, it returns the type of the values
// for every name.
func typeOf(in reflect.Type, name string) (reflect.StructField, bool) {
	if in.Kind() == reflect.Map {
		return reflect.StructField{Type: in.Elem()}, true
	}
	if in.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}

	for _, field := range reflect.VisibleFields(in) {
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag == name && name != "" {
			return field, true
		}
	}

	return reflect.StructField{}, false
}

// elementsDiffer returns an error if a list has two elements with the same key of the strategic
// merge, an element without the key, or too many elements.
func elementsDiffer(list []any, field reflect.StructField, at string) error {
	key := field.Tag.Get("patchMergeKey")
	if key == "" || slices.Contains(atomicLists, at[strings.LastIndex(at, ".")+1:]) {
		return nil
	}
	if len(list) > maxMerged {
		return fmt.Errorf("%s: has more than %d elements", at, maxMerged)
	}

	seen := sets.New[string]()
	for i, element := range list {
		fields, _ := element.(map[string]any)
		value := fmt.Sprint(fields[key])
		switch {
		case fields[key] == nil:
			return fmt.Errorf("%s[%d]: has no %s", at, i, key)
		case seen.Has(value):
			return fmt.Errorf("%s[%d]: two elements have the %s %q; leave one", at, i, key, value)
		}

		seen.Insert(value)
	}

	return nil
}
