package conversion

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/bounds"
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
	switch ports, isList := kept["ports"].([]any); {
	case isPortOfV1alpha1(ports):
		delete(kept, "ports")
	case isList && len(ports) == 0:
		kept["ports"] = nil // see hasNoPorts
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

// parse reads what keep wrote. Where the text is not that, it returns an error and as much as can be relied on: all of it when
// the only fault is in fields that are given twice, and else nothing. Fields that this release does not know are no fault: a
// newer one has them, whose CRD comes before its Pods.
func parse(text string) (map[string]any, error) {
	kept, _, err := read(text)
	return kept, err
}

// read returns what the text says as JSON and as the type of the API.
func read(text string) (map[string]any, v1alpha2.NginxOperatorSpec, error) {
	var spec v1alpha2.NginxOperatorSpec
	fail := func(err error) (map[string]any, v1alpha2.NginxOperatorSpec, error) {
		return map[string]any{}, v1alpha2.NginxOperatorSpec{}, fmt.Errorf("failed to read it: %w", err)
	}
	if text == "" {
		return map[string]any{}, spec, nil
	}
	if err := bounds.JSON([]byte(text)); err != nil {
		return fail(err)
	}
	kept := map[string]any{}
	duplicates, err := kjson.UnmarshalStrict([]byte(text), &kept)
	if err != nil {
		return fail(err)
	}
	if kept == nil { // null
		kept = map[string]any{}
	}
	if errs := bounds.Quantities(kept, nil); len(errs) > 0 {
		return fail(errs.ToAggregate())
	}
	// Of a field that is given twice the text has more than was held against the bounds, so it is not the text that is decoded.
	raw, err := json.Marshal(kept)
	if err != nil {
		return fail(err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &spec); err != nil {
		return fail(err)
	}
	return kept, spec, errors.Join(duplicates...)
}

// Check returns why the text of the annotation cannot be read, nil where it can.
func Check(text string) error {
	_, _, err := read(text)
	return err
}

// Same reports whether two texts of the annotation mean the same, in the fields that this release knows.
func Same(a, b string) bool {
	if a == b {
		return true
	}
	keptA, specA, errA := read(a)
	keptB, specB, errB := read(b)
	return errA == nil && errB == nil && hasNoPorts(keptA) == hasNoPorts(keptB) && equality.Semantic.DeepEqual(specA, specB)
}

// hasNoPorts reports whether what is kept has an empty list of ports, which stands there as null: an empty list has meant since
// 0.2.0 that no list was given.
func hasNoPorts(kept map[string]any) bool {
	ports, found := kept["ports"]
	return found && ports == nil
}
