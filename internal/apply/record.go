package apply

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
)

// noRecord is a record by which nothing counts as declared before.
const noRecord = "{}"

// believed returns what a child's record of its last declaration says, as this package would write it, and noRecord where it says
// nothing. Whoever may write the child may write its record too. So it goes through the kind of the child: what no declaration
// of that kind could say (a list with null in it, at which the merge would panic) is not in the result.
func believed(live client.Object, record string) []byte {
	decoder := json.NewDecoder(bytes.NewReader([]byte(record)))
	decoder.UseNumber()
	var said map[string]any
	if decoder.Decode(&said) != nil || hasHugeNumber(said) || hasLongList(said) {
		return []byte(noRecord)
	}
	// What was looked at is what is decoded: not a field that is given twice, nor one under a name in other letters.
	raw, err := json.Marshal(said)
	child := reflect.New(reflect.TypeOf(live).Elem()).Interface().(client.Object)
	if err != nil || kjson.UnmarshalCaseSensitivePreserveInts(raw, child) != nil {
		return []byte(noRecord)
	}
	if raw, err = declaration(child); err != nil {
		return []byte(noRecord)
	}
	said = nil
	if json.Unmarshal(raw, &said) != nil {
		return []byte(noRecord)
	}
	dropNulls(said)
	if raw, err = json.Marshal(said); err != nil {
		return []byte(noRecord)
	}
	return raw
}

// dropNulls takes the fields that are null out of an object and of those in it: a required field that was never set is one.
func dropNulls(object map[string]any) {
	for key, value := range object {
		if value == nil {
			delete(object, key)
		} else if inner, ok := value.(map[string]any); ok {
			dropNulls(inner)
		}
	}
}

// hugeNumber is a number whose exponent has four digits or more. A quantity like that would be computed to the last digit.
var hugeNumber = regexp.MustCompile(`^\s*[+-]?[0-9.]*[eE][+-]?[0-9]{4,}\s*$`)

// quantities are the fields of the children's kinds that are quantities, or hold them. Elsewhere a text may look like a huge
// number: the name of an object, or its UID.
var quantities = []string{"limits", "requests", "overhead", "sizeLimit", "divisor"}

func hasHugeNumber(value any) bool {
	return anyOf(value, func(inner any) bool {
		fields, isMap := inner.(map[string]any)
		if !isMap {
			return false
		}
		return slices.ContainsFunc(quantities, func(name string) bool { return anyOf(fields[name], isHugeNumber) })
	})
}

func isHugeNumber(value any) bool {
	switch value := value.(type) {
	case string:
		return hugeNumber.MatchString(value)
	case json.Number:
		return hugeNumber.MatchString(value.String())
	}
	return false
}

// maxElements bounds the lists that are merged element by element, because that takes time in proportion to the square of their
// length. It is far above what a Pod has of anything.
const maxElements = 128

func hasLongList(value any) bool {
	return anyOf(value, func(inner any) bool {
		list, isList := inner.([]any)
		return isList && len(list) > maxElements
	})
}

// anyOf reports whether the function holds for the value or for any that is in it.
func anyOf(value any, holds func(any) bool) bool {
	if holds(value) {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			if anyOf(inner, holds) {
				return true
			}
		}
	case []any:
		for _, inner := range value {
			if anyOf(inner, holds) {
				return true
			}
		}
	}
	return false
}
