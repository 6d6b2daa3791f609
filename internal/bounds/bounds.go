// Package bounds says how much of what others wrote is worked on. Whatever a tenant can store or post is held against it
// before it is decoded into Go types, some of which compute on what they read.
// docs/adr/0019-bounds-of-what-is-read.md has the reasons.
package bounds

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

const (
	// MaxBytes bounds one object as JSON. The API server takes no request of more than 3 MiB.
	MaxBytes = 3 << 20
	// MaxDepth bounds how deep maps and lists of an object are nested. Its deepest field, an expression of an affinity, has
	// less than 20; what the API server notes of field managers is about twice as deep.
	MaxDepth = 64
	// MaxValues bounds how many values an object has, so that a decoder cannot make more than a few MiB of a small text. One that
	// uses every field has some hundreds, and as many again for each field manager that owns all of them.
	MaxValues = 16_384
	// maxStoredValues bounds those of an object that is converted. Each of a list of 1.5 MiB, which is as much as etcd takes, has
	// six bytes or more: whatever is stored can be converted, because one object that cannot be takes all others of a list along.
	maxStoredValues = 256 << 10
	// maxStoredDepth is that of the decoders of Go and of the API server.
	maxStoredDepth = 10_000

	maxQuantities     = 32
	maxQuantityLength = 32
)

// quantity is what the schema of the API also demands (config/crd/quantities.yaml): the parser of Kubernetes computes the
// power of ten, however large the exponent is.
var quantity = regexp.MustCompile(`^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`)

// JSON returns why a JSON text is more than what is decoded, nil where it is not. It says nothing about whether the text is
// valid, and takes no memory.
func JSON(raw []byte) error { return within(raw, MaxDepth, MaxValues) }

// Stored returns why a JSON text is more than an object that the API server could have stored, nil where it is not.
func Stored(raw []byte) error { return within(raw, maxStoredDepth, maxStoredValues) }

// Values returns why a JSON text has more values than so many, nil where it has not.
func Values(raw []byte, most int) error { return within(raw, MaxDepth, most) }

func within(raw []byte, maxDepth, maxValues int) error {
	if len(raw) > MaxBytes {
		return fmt.Errorf("it has %d bytes, and %d are the most that are read", len(raw), MaxBytes)
	}
	depth, values, inText := 0, 1, false
	for i := 0; i < len(raw); i++ {
		switch char := raw[i]; {
		case inText && char == '\\':
			i++
		case char == '"':
			inText = !inText
		case inText:
		case char == '{', char == '[':
			depth, values = depth+1, values+1
		case char == '}', char == ']':
			depth--
		case char == ',':
			values++
		}
		if depth > maxDepth {
			return fmt.Errorf("it is nested more than %d deep", maxDepth)
		}
		if values > maxValues {
			return fmt.Errorf("it has more than %d values", maxValues)
		}
	}
	return nil
}

// Read decodes a JSON object that is within the bounds. Fields that are given twice are an error: of those, each decoder
// takes another one.
func Read(raw []byte) (map[string]any, error) {
	if err := JSON(raw); err != nil {
		return nil, err
	}
	var object map[string]any
	faults, err := kjson.UnmarshalStrict(raw, &object)
	if err == nil {
		err = errors.Join(faults...)
	}
	return object, err
}

// Quantities returns what is wrong with the quantities of a spec of v1alpha2, without computing on them.
func Quantities(spec map[string]any, path *field.Path) field.ErrorList {
	errs := resourceQuantities(spec, path)
	if monitoring, found := spec["monitoring"].(map[string]any); found {
		errs = append(errs, resourceQuantities(monitoring, path.Child("monitoring"))...)
	}
	for _, name := range []string{"initContainers", "sidecars"} {
		for i, container := range elementsOf(spec[name]) {
			errs = append(errs, resourceQuantities(container, path.Child(name).Index(i))...)
		}
	}
	for i, volume := range elementsOf(spec["volumes"]) {
		emptyDir, _ := volume["emptyDir"].(map[string]any)
		if limit, found := emptyDir["sizeLimit"]; found && limit != nil && !IsQuantity(limit) {
			errs = append(errs, field.Invalid(path.Child("volumes").Index(i).Child("emptyDir", "sizeLimit"), field.OmitValueType{}, QuantityRule))
		}
	}
	return errs
}

// elementsOf returns the objects of a list in their places.
func elementsOf(value any) []map[string]any {
	list, _ := value.([]any)
	out := make([]map[string]any, len(list))
	for i := range list {
		out[i], _ = list[i].(map[string]any)
	}
	return out
}

// resourceQuantities returns what is wrong with the quantities of what has resources.
func resourceQuantities(of map[string]any, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	resources, _ := of["resources"].(map[string]any)
	for _, name := range []string{"limits", "requests"} {
		list, _ := resources[name].(map[string]any)
		at := path.Child("resources", name)
		if len(list) > maxQuantities {
			errs = append(errs, field.TooMany(at, len(list), maxQuantities))
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(list)) {
			if !IsQuantity(list[key]) {
				errs = append(errs, field.Invalid(at.Key(key), field.OmitValueType{}, QuantityRule))
			}
		}
	}
	return errs
}

// QuantityRule says what a quantity has to be.
const QuantityRule = "a quantity has at most 32 characters, two digits in its exponent and no fraction there; " +
	"write it with a suffix, for example 500m, 128Mi or 2G"

// IsQuantity reports whether a value is a quantity that is cheap to compute with.
func IsQuantity(value any) bool {
	var text string
	switch value := value.(type) {
	case int64:
		return true
	case float64:
		text = strconv.FormatFloat(value, 'g', -1, 64)
	case string:
		text = value
	}
	return len(text) <= maxQuantityLength && quantity.MatchString(text)
}
