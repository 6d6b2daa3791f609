// Package bounds limits input that other clients write. Everything that a tenant can store or post
// is checked before it is decoded into Go types, because some types compute on their input. For the
// reasons, see docs/adr/0019-bounds-of-what-is-read.md.
package bounds

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"
)

const (
	// MaxBytes bounds one object as JSON. The API server accepts no request of more than 3 MiB.
	MaxBytes = 3 << 20
	// MaxDepth bounds the nesting of maps and lists in an object. The deepest field has less than 20
	// levels. The API server's records of field managers are about twice as deep.
	MaxDepth = 64
	// MaxValues bounds the values of an object, so that a decoder cannot create more than a few MiB
	// from a small text. An object that uses every field has some hundreds of values, and the same
	// number for each field manager that owns all of them.
	MaxValues = 16_384
	// maxStoredValues bounds the values of a converted object. etcd accepts 1.5 MiB, and each element
	// of a list has at least six bytes, so every stored object can be converted. One that cannot
	// would fail the whole list.
	maxStoredValues = 256 << 10
	// maxStoredDepth is the limit of the decoders of Go and of the API server.
	maxStoredDepth = 10_000

	// MaxQuantityLength is the maximum length of a quantity.
	MaxQuantityLength = 32
	// QuantityPattern matches a quantity that is cheap to compute. The parser of Kubernetes
	// computes the power of ten, however large the exponent is.
	QuantityPattern = `^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
)

var quantity = regexp.MustCompile(QuantityPattern)

// JSON returns an error if a JSON text exceeds the bounds for decoding. It does not check whether
// the text is valid, and allocates no memory.
func JSON(raw []byte) error { return within(raw, MaxDepth, MaxValues) }

// Stored returns an error if the API server cannot have stored a JSON text as an object. The API
// server stores UTF-8, and a decoder replaces each invalid byte by three.
func Stored(raw []byte) error {
	if err := within(raw, maxStoredDepth, maxStoredValues); err != nil {
		return err
	}
	if !utf8.Valid(raw) {
		return errors.New("not valid UTF-8")
	}
	return nil
}

// Values returns an error if a JSON text has more than the given number of values.
func Values(raw []byte, most int) error { return within(raw, MaxDepth, most) }

func within(raw []byte, maxDepth, maxValues int) error {
	if len(raw) > MaxBytes {
		return fmt.Errorf("exceeds the limit of %d bytes", MaxBytes)
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
			return fmt.Errorf("exceeds the limit of %d levels of nesting", maxDepth)
		}
		if values > maxValues {
			return fmt.Errorf("exceeds the limit of %d values", maxValues)
		}
	}

	return nil
}

// Read decodes a JSON object within the bounds. Duplicate fields are an error.
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

// QuantityRule describes a valid quantity.
const QuantityRule = "must be a quantity of at most 32 characters, with an integer of at most two digits as exponent; " +
	"write for example 500m, 128Mi, or 2G"

// IsQuantity reports whether a value is a quantity that is cheap to compute.
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
	return len(text) <= MaxQuantityLength && quantity.MatchString(text)
}

const quantityChars = "0123456789+-.eEinumkKMGTP"

// MayBeExpensive reports whether a string or a number in a JSON text could be a quantity that is
// expensive to compute. It allocates no memory. Values that pass are not necessarily quantities. If
// it returns true, the caller must check the fields with quantities with IsQuantity.
func MayBeExpensive(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		var token []byte
		switch char := raw[i]; {
		case char == '"':
			token = raw[i+1 : i+1+endOfText(raw[i+1:])]
			i += len(token) + 1
		case char == '-', char >= '0' && char <= '9':
			token = raw[i:]
			if end := bytes.IndexAny(token, ",]} \t\r\n"); end >= 0 {
				token = token[:end]
			}
			i += len(token)
		default:
			continue
		}
		if isExpensive(token) {
			return true
		}
	}
	return false
}

func endOfText(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return len(text)
}

// isExpensive reports whether a token has only characters of a quantity, or escapes that can
// represent them, and is too long, has a too long exponent, or has spaces around it. The decoder of
// a quantity removes the spaces and computes the rest.
func isExpensive(token []byte) bool {
	trimmed, exponent := bytes.TrimSpace(token), -1
	for i, char := range trimmed {
		switch {
		case char == '\\':
			return true
		case strings.IndexByte(quantityChars, char) < 0:
			return false
		case (char == 'e' || char == 'E') && exponent < 0:
			exponent = i
		}
	}

	const longest = len("e99")
	return len(token) > min(len(trimmed), MaxQuantityLength) || exponent >= 0 && len(trimmed)-exponent > longest
}
