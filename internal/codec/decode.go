// Package codec decodes NginxOperators within the bounds of package bounds.
package codec

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds"
)

// Decode decodes one v1alpha2 object within the bounds.
func Decode(object map[string]any) (*v1alpha2.NginxOperator, error) {
	spec, _ := object["spec"].(map[string]any)
	if errs := Quantities(spec, field.NewPath("spec")); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	raw, err := Encode(object)
	if err != nil {
		return nil, fmt.Errorf("failed to encode: %w", err)
	}
	if err := bounds.JSON(raw); err != nil {
		return nil, err
	}
	// The conversion from the map truncates numbers that are too large for their field, so this
	// goes through JSON.
	return decode(raw)
}

// DecodeText decodes the text of an object that bounds.Read has accepted, and whose quantities are
// within the bounds. bounds.Read rejects duplicate fields, so every decoded value was checked.
func DecodeText(raw []byte) (*v1alpha2.NginxOperator, error) { return decode(raw) }

// Encode returns a value as JSON. Unlike json.Marshal, it does not escape "<", ">", and "&" to six
// bytes each.
func Encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// decode decodes an object within the bounds.
func decode(raw []byte) (*v1alpha2.NginxOperator, error) {
	out := &v1alpha2.NginxOperator{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, out); err != nil {
		return nil, err
	}
	return out, nil
}
