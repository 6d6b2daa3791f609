package conversion

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// keep returns what v1alpha1 cannot say of a v1alpha2 spec, as JSON, and "" where there is nothing.
func keep(spec map[string]any) (string, error) {
	kept := maps.Clone(spec)
	if kept == nil {
		kept = map[string]any{}
	}
	for _, field := range inBoth {
		delete(kept, field)
	}
	switch ports, _ := kept["ports"].([]any); {
	case isPortOfV1alpha1(ports):
		delete(kept, "ports")
	case len(ports) == 0:
		// v1alpha1 always has a port, so that none was given has to be kept.
		kept["ports"] = []any{}
	}
	if len(kept) == 0 {
		return "", nil
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	// Nobody puts this into a page, so "<", ">" and "&" need not become six bytes each.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(kept); err != nil {
		return "", fmt.Errorf("failed to keep what v1alpha1 cannot say: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// parse reads what keep wrote. Where the text is not that, it returns an error and as much as can be relied on: all known
// fields when the only fault is in fields that are unknown or given twice, and else nothing.
func parse(text string) (map[string]any, error) {
	spec, err := parseTyped(text)
	switch {
	case errors.Is(err, errStrict):
		known, convertErr := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
		return known, errors.Join(err, convertErr)
	case err != nil || text == "":
		return map[string]any{}, err
	}
	kept := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &kept); err != nil {
		return map[string]any{}, fmt.Errorf("failed to read it: %w", err)
	}
	if kept == nil { // null
		kept = map[string]any{}
	}
	return kept, nil
}

// errStrict: a text can be read, but is not what keep would write.
var errStrict = errors.New("not what the operator writes")

func parseTyped(text string) (v1alpha2.NginxOperatorSpec, error) {
	var spec v1alpha2.NginxOperatorSpec
	if text == "" {
		return spec, nil
	}
	faults, err := kjson.UnmarshalStrict([]byte(text), &spec)
	if err != nil {
		return v1alpha2.NginxOperatorSpec{}, fmt.Errorf("failed to read it: %w", err)
	}
	if len(faults) > 0 {
		return spec, fmt.Errorf("%w: %w", errStrict, errors.Join(faults...))
	}
	return spec, nil
}

// Check returns why the text of the annotation cannot be read, nil where it can.
func Check(text string) error {
	_, err := parseTyped(text)
	return err
}

// Same tells whether two texts of the annotation mean the same.
func Same(a, b string) bool {
	if a == b {
		return true
	}
	specA, errA := parseTyped(a)
	specB, errB := parseTyped(b)
	return errA == nil && errB == nil && equality.Semantic.DeepEqual(specA, specB)
}
