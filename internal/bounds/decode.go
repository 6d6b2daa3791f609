package bounds

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// Decode decodes one object of v1alpha2, after it has been held against the bounds.
func Decode(object map[string]any) (*v1alpha2.NginxOperator, error) {
	spec, _ := object["spec"].(map[string]any)
	if errs := Quantities(spec, field.NewPath("spec")); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("failed to encode: %w", err)
	}
	if err := JSON(raw); err != nil {
		return nil, err
	}
	// By way of JSON, because a conversion from the map cuts numbers that are too large for their field.
	return decode(raw)
}

// decode decodes an object that is within the bounds.
func decode(raw []byte) (*v1alpha2.NginxOperator, error) {
	out := &v1alpha2.NginxOperator{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, out); err != nil {
		return nil, err
	}
	return out, nil
}
