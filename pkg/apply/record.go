package apply

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	kjson "sigs.k8s.io/json"
)

// record returns the annotation of the last declaration: the declaration without the labels in
// Unrecorded.
func (a *Applier) record(declared []byte) []byte {
	// Only the Deployment has such a label, and decoding the other children costs more than this.
	if !slices.ContainsFunc(a.Unrecorded, func(key string) bool { return bytes.Contains(declared, []byte(key)) }) {
		return declared
	}
	// The other fields stay encoded.
	var object, metadata map[string]json.RawMessage
	var labels map[string]string
	if json.Unmarshal(declared, &object) != nil || json.Unmarshal(object["metadata"], &metadata) != nil ||
		json.Unmarshal(metadata["labels"], &labels) != nil {
		return declared
	}
	before := len(labels)
	for _, key := range a.Unrecorded {
		delete(labels, key)
	}
	if len(labels) == before {
		return declared
	}
	out, err := json.Marshal(labels)
	if err == nil {
		metadata["labels"] = out
		out, err = json.Marshal(metadata)
	}
	if err == nil {
		object["metadata"] = out
		out, err = json.Marshal(object)
	}
	if err != nil {
		return declared
	}
	return out
}

func (a *Applier) recordOf(live client.Object) string { return live.GetAnnotations()[a.Annotation] }

// noRecord is a record without any declared field.
const noRecord = "{}"

// sanitizeRecord returns a child's record of its last declaration in the form that this package
// writes, or noRecord if the record is invalid. A client that can write the child can also write
// its record. So the record is decoded into the Go type of the child, which removes everything that
// no declaration of this kind can have, for example a list with null, which would make the merge
// panic.
func sanitizeRecord(live client.Object, record string) []byte {
	decoder := json.NewDecoder(bytes.NewReader([]byte(record)))
	decoder.UseNumber()
	var said map[string]any
	if decoder.Decode(&said) != nil || hasHugeNumber(said) || hasLongList(said) {
		return []byte(noRecord)
	}
	// Decode only the checked fields: no duplicate fields, and no names in another case.
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

// dropNulls removes null fields from an object and its inner objects. A required field that was
// never set is null.
func dropNulls(object map[string]any) {
	for key, value := range object {
		if value == nil {
			delete(object, key)
		} else if inner, ok := value.(map[string]any); ok {
			dropNulls(inner)
		}
	}
}

// hugeNumber matches a number whose exponent has four digits or more. Computing such a quantity to
// the last digit is expensive.
var hugeNumber = regexp.MustCompile(`^\s*[+-]?[0-9.]*[eE][+-]?[0-9]{4,}\s*$`)

// quantities are the fields of the children's kinds that are or contain quantities. Other fields
// can contain text that looks like a huge number, such as a name or a UID.
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

// maxElements bounds lists that are merged by element, because the cost grows with the square of
// their length. It is far above the length of any list in a Pod.
const maxElements = 128

func hasLongList(value any) bool {
	return anyOf(value, func(inner any) bool {
		list, isList := inner.([]any)
		return isList && len(list) > maxElements
	})
}

// anyOf reports whether the function returns true for the value or for any value in it.
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

// LastDeclared returns the last declaration of a child as it is stored, or nil if it has none.
// Another client may have written it, so it has nothing but fields of the kind.
func (a *Applier) LastDeclared(live client.Object) client.Object {
	raw := sanitizeRecord(live, a.recordOf(live))
	out := emptyOf(live)
	if string(raw) == noRecord || json.Unmarshal(raw, out) != nil {
		return nil
	}
	out.SetNamespace(live.GetNamespace())
	out.SetName(live.GetName())
	out.SetOwnerReferences(nil)
	gvk, err := apiutil.GVKForObject(live, a.Client.Scheme())
	if err != nil {
		return nil
	}
	out.GetObjectKind().SetGroupVersionKind(gvk)
	return out
}

// abbreviate returns a stored child as a declaration has it, with the first word of the abbreviated
// annotation.
func (a *Applier) abbreviate(live client.Object) client.Object {
	head, _, isLonger := strings.Cut(live.GetAnnotations()[a.Abbreviated], " ")
	if !isLonger {
		return live
	}
	abbreviated := live.DeepCopyObject().(client.Object)
	abbreviated.GetAnnotations()[a.Abbreviated] = head
	return abbreviated
}
