package conversion

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/pkg/bounds"
)

// maxDecodedValues bounds the values of a decoded field. The fields that the conversion uses have
// fewer. A decoded value takes up to 300 bytes, and an object can have 262,144 values.
const maxDecodedValues = 1024

// readShallow decodes the parts of an object that the conversion uses: the type, the annotations,
// and the spec fields that v1alpha1 has. All other fields stay text (json.RawMessage).
func readShallow(raw []byte) (*unstructured.Unstructured, error) {
	var object map[string]any
	if err := decodeFields(raw, &object); err != nil {
		return nil, err
	}
	expand(object, "metadata", decodeObject)
	expand(object, "spec", decodeObject)
	for _, name := range []string{"apiVersion", "kind"} {
		expand(object, name, decodeSmall)
	}
	if metadata, isObject := object["metadata"].(map[string]any); isObject {
		expand(metadata, "annotations", decodeObject)
		annotations, _ := metadata["annotations"].(map[string]any)
		for name := range annotations {
			expand(annotations, name, decodeSmall)
		}
	}
	if spec, isObject := object["spec"].(map[string]any); isObject {
		for _, name := range append([]string{"port", "ports"}, inBoth...) {
			expand(spec, name, decodeSmall)
		}
	}
	return &unstructured.Unstructured{Object: object}, nil
}

// expand decodes one field of an object, if the field exists.
func expand(object map[string]any, name string, decode func(raw json.RawMessage) any) {
	if raw, isText := object[name].(json.RawMessage); isText {
		object[name] = decode(raw)
	}
}

// decodeFields decodes an object whose values stay text.
func decodeFields(raw []byte, out *map[string]any) error {
	var fields map[string]json.RawMessage
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &fields); err != nil {
		return fmt.Errorf("failed to decode it: %w", err)
	}
	if fields == nil { // null
		return nil
	}
	*out = make(map[string]any, len(fields))
	for name, value := range fields {
		(*out)[name] = value
	}
	return nil
}

// decodeObject returns the fields of an object, or a value of another type as decodeSmall does.
func decodeObject(raw json.RawMessage) any {
	var out map[string]any
	if decodeFields(raw, &out) != nil || out == nil {
		return decodeSmall(raw)
	}
	return out
}

// decodeSmall returns a value if it contains few values, or else its text.
func decodeSmall(raw json.RawMessage) any {
	var out any
	if bounds.Values(raw, maxDecodedValues) != nil || kjson.UnmarshalCaseSensitivePreserveInts(raw, &out) != nil {
		return raw
	}
	return out
}

// deepCopy copies a value of an object. Strings, decoded or not, are never changed, so they are
// shared.
func deepCopy(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, element := range value {
			out[key] = deepCopy(element)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, element := range value {
			out[i] = deepCopy(element)
		}
		return out
	default:
		return value
	}
}
