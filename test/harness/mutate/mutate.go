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
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/internal/schema"
)

// Field is a field of a schema.
type Field struct {
	// Path is the path of the field, for example ports[0].name.
	Path string
	// Candidates are objects in which the field differs from the original object, the most likely
	// valid first.
	Candidates iter.Seq[map[string]any]
}

// Valid returns the candidates that the schema allows. Thousands of candidates can violate it, and
// the library of the API server finds that without a request.
func (f Field) Valid() iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		for candidate := range f.Candidates {
			if len(schema.Violations(candidate, field.NewPath("spec"))) == 0 && !yield(candidate) {
				return
			}
		}
	}
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
