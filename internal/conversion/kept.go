package conversion

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/bounds"
)

// keep returns the fields of a v1alpha2 spec that v1alpha1 lacks, as JSON, or "" for none.
func keep(spec map[string]any) string {
	kept := map[string]any{}
	maps.Copy(kept, spec)
	for _, field := range inBoth {
		delete(kept, field)
	}

	switch ports := kept["ports"].(type) {
	case []any:
		if isPortOfV1alpha1(ports) {
			delete(kept, "ports")
		} else if len(ports) == 0 {
			kept["ports"] = nil // see hasNoPorts
		}
	case json.RawMessage: // larger than any object of this API
	default:
		// v1alpha1 always has a port, so the annotation must record that there was none.
		kept["ports"] = []any{}
	}

	if len(kept) == 0 {
		return ""
	}

	var text strings.Builder
	_ = output{bufio.NewWriter(&text)}.json(kept).Flush()
	return text.String()
}

// read returns the output of keep as JSON and as the API type. If the text is invalid, it returns an
// error and the reliable part: all of it if only duplicate fields are wrong, otherwise nothing.
// Unknown fields are not an error: they belong to a newer release, whose CRD is installed before its
// Pods.
func read(text string) (map[string]any, v1alpha2.NginxOperatorSpec, error) {
	kept, raw := map[string]any{}, []byte(cmp.Or(text, "{}"))
	var spec v1alpha2.NginxOperatorSpec
	var duplicates []error

	err := bounds.JSON(raw)
	if err == nil {
		duplicates, err = kjson.UnmarshalStrict(raw, &kept)
	}
	if err == nil {
		err = codec.Quantities(kept, nil).ToAggregate()
	}

	// Decode the checked fields instead of the text: if a field is duplicated, the text has values
	// that codec.Quantities did not check.
	if err == nil {
		raw, err = json.Marshal(kept)
	}
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(raw, &spec)
	}
	if err != nil {
		return nil, v1alpha2.NginxOperatorSpec{}, fmt.Errorf("failed to decode it: %w", err)
	}

	return kept, spec, errors.Join(duplicates...)
}

// Check returns an error if the text of the annotation cannot be read.
func Check(text string) error {
	_, _, err := read(text)
	return err
}

// Same reports whether two texts are equivalent in the fields that this release knows.
func Same(a, b string) bool {
	if a == b {
		return true
	}

	keptA, specA, errA := read(a)
	keptB, specB, errB := read(b)
	return errA == nil && errB == nil && hasNoPorts(keptA) == hasNoPorts(keptB) && equality.Semantic.DeepEqual(specA, specB)
}

// hasNoPorts reports whether the annotation has an empty list of ports. It is stored as null,
// because since 0.2.0 an empty list means that no list was set.
func hasNoPorts(kept map[string]any) bool {
	ports, isSet := kept["ports"]
	return isSet && ports == nil
}

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
