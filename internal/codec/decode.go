// Package codec decodes NginxOperators within the bounds of package bounds.
package codec

import (
	"bytes"
	"encoding/json"

	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// DecodeText decodes the text of a v1alpha2 object that is within the bounds, without duplicate
// fields, and whose quantities were checked. A number that is too large for its field is an error.
func DecodeText(raw []byte) (*v1alpha2.NginxOperator, error) {
	object := &v1alpha2.NginxOperator{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, object); err != nil {
		return nil, err
	}
	return object, nil
}

// Encode returns a value as JSON. Unlike json.Marshal, it does not escape "<", ">", and "&" to six
// bytes each.
func Encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}
