package conversion

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/bounds"
)

// maxDecodedValues bounds the values of a decoded field. The fields that the conversion uses have
// fewer. A decoded value takes up to 300 bytes, and an object can have 262,144 values.
const maxDecodedValues = 1024

// readShallow decodes the parts of an object that the conversion uses: the type, the annotation,
// and the spec fields that v1alpha1 has. All other fields stay text (json.RawMessage).
func readShallow(raw []byte) (*unstructured.Unstructured, error) {
	object, err := decodeFields(raw)
	if err != nil {
		return nil, err
	}

	expand(object, decodeObject, "metadata", "spec")
	expand(object, decodeSmall, "apiVersion", "kind")

	metadata, _ := object["metadata"].(map[string]any)
	expand(metadata, decodeObject, "annotations")
	annotations, _ := metadata["annotations"].(map[string]any)
	expand(annotations, decodeSmall, wellknown.AnnotationV1alpha2)

	spec, _ := object["spec"].(map[string]any)
	expand(spec, decodeSmall, append([]string{"port", "ports"}, inBoth...)...)
	return &unstructured.Unstructured{Object: object}, nil
}

// expand decodes fields of an object, if they exist.
func expand(object map[string]any, decode func(raw json.RawMessage) any, names ...string) {
	for _, name := range names {
		if raw, isText := object[name].(json.RawMessage); isText {
			object[name] = decode(raw)
		}
	}
}

// decodeFields decodes an object whose values stay text. It returns nil for null.
func decodeFields(raw []byte) (map[string]any, error) {
	var texts map[string]json.RawMessage
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &texts); err != nil {
		return nil, err
	}
	if texts == nil {
		return nil, nil
	}

	fields := make(map[string]any, len(texts))
	for name, text := range texts {
		fields[name] = text
	}
	return fields, nil
}

// decodeObject returns the fields of an object, or a value of another type as decodeSmall does.
func decodeObject(raw json.RawMessage) any {
	if fields, err := decodeFields(raw); err == nil && fields != nil {
		return fields
	}
	return decodeSmall(raw)
}

// decodeSmall returns a value if it contains few values, or else its text.
func decodeSmall(raw json.RawMessage) any {
	var value any
	if bounds.Values(raw, maxDecodedValues) != nil || kjson.UnmarshalCaseSensitivePreserveInts(raw, &value) != nil {
		return raw
	}
	return value
}
