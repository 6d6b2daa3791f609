package mutate

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

type props = apiextensionsv1.JSONSchemaProps

func object(rules []string, required []string, properties map[string]props) props {
	out := props{Type: "object", Properties: properties, Required: required}
	for _, rule := range rules {
		out.XValidations = append(out.XValidations, apiextensionsv1.ValidationRule{Rule: rule})
	}
	return out
}

// TestFields checks that each field is found, and that each of its candidates is another object.
// TestEveryFieldCanBeChanged in test/integration checks that one of them is valid.
func TestFields(t *testing.T) {
	text, number := props{Type: "string"}, props{Type: "integer", Minimum: ptr.To(1.0), Maximum: ptr.To(9.0)}
	choice := func(values ...string) props {
		out := text
		for _, value := range values {
			out.Enum = append(out.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + value + `"`)})
		}
		return out
	}
	port := object(nil, []string{"name", "port"}, map[string]props{"name": text, "port": number, "protocol": choice("TCP")})
	labels := props{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}}
	schema := object(nil, nil, map[string]props{
		"ports":  {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &port}},
		"paused": {Type: "boolean"},
		"service": object([]string{"!has(self.never)"}, nil, map[string]props{
			"never": text, "type": choice("A", "B"), "labels": labels,
		}),
		"source": object(nil, nil, map[string]props{"inline": text, "name": text}),
	})
	base := map[string]any{
		"ports":  []any{map[string]any{"name": "http", "port": 1}, map[string]any{"name": "admin", "port": 2}},
		"source": map[string]any{"inline": "x"},
	}
	before := copyOf(base)
	fields := Fields(&schema, base, Pool{Strings: []string{"http", "other"}, Keys: []string{"key"}})
	if diff := cmp.Diff(before, copyOf(base)); diff != "" {
		t.Errorf("the object was changed:\n%s", diff)
	}
	var paths []string
	for _, field := range fields {
		paths = append(paths, field.Path)
		candidates := slices.Collect(field.Candidates)
		if len(candidates) == 0 {
			t.Errorf("%s cannot be changed", field.Path)
		}
		for _, candidate := range candidates {
			if same(candidate, base) {
				t.Errorf("%s: a candidate is what there was", field.Path)
			}
		}
	}
	want := []string{
		"less of ports", "none of ports", "order of ports", "paused", "ports[0].name", "ports[0].port", "service.labels", "service.type",
		"source.inline", "source.name",
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}
