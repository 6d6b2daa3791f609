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
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/pkg/bounds"
)

// keep returns the fields of a v1alpha2 spec that v1alpha1 does not have, as JSON, or "" if there
// are none.
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

// Same reports whether two texts of the annotation are equivalent in the fields that this release
// knows.
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
