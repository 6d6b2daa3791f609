package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	kjson "sigs.k8s.io/json"
)

// record returns the declaration without the label Unrecorded.
func (a *Applier) record(declared []byte) []byte {
	// Decoding children without the label would cost more than this.
	if a.Unrecorded == "" || !bytes.Contains(declared, []byte(a.Unrecorded)) {
		return declared
	}

	var fields map[string]any
	if kjson.UnmarshalCaseSensitivePreserveInts(declared, &fields) != nil {
		return declared
	}

	unstructured.RemoveNestedField(fields, "metadata", "labels", a.Unrecorded)
	record, err := json.Marshal(fields)
	if err != nil {
		return declared
	}

	return record
}

func (a *Applier) recordOf(live client.Object) string { return live.GetAnnotations()[a.Annotation] }

const noRecord = "{}"

// sanitizeRecord returns a child's record of its last declaration in the form that this package
// writes, or noRecord if the record is invalid. A client that can write the child can also write
// its record. So the record is decoded into the Go type of the child, which removes everything that
// no declaration of this kind can have, for example a list with null, which would make the merge
// panic.
func sanitizeRecord(live client.Object, record string) []byte {
	var fields map[string]any
	err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(record), &fields)
	if err != nil || hasHugeNumber(fields) || hasLongList(fields) {
		return []byte(noRecord)
	}

	// Decode only the checked fields: no duplicate fields, and no names in another case.
	raw, err := json.Marshal(fields)
	child := emptyOf(live)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(raw, child)
	}
	if err == nil {
		raw, err = declaration(child)
	}
	if err != nil {
		return []byte(noRecord)
	}

	return raw
}

// hugeNumber has an exponent of four digits or more, which is expensive to compute.
var hugeNumber = regexp.MustCompile(`^\s*[+-]?[0-9.]*[eE][+-]?[0-9]{4,}\s*$`)

// quantities are the fields of the children's kinds that are or contain quantities. Other fields
// can contain text that looks like a huge number, such as a name or a UID.
var quantities = []string{"limits", "requests", "overhead", "sizeLimit", "divisor"}

func hasHugeNumber(value any) bool {
	isHuge := func(inner any) bool {
		text, isText := inner.(string)
		return isText && hugeNumber.MatchString(text)
	}
	return anyOf(value, func(inner any) bool {
		fields, _ := inner.(map[string]any)
		return slices.ContainsFunc(quantities, func(name string) bool { return anyOf(fields[name], isHuge) })
	})
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

func anyOf(value any, holds func(any) bool) bool {
	fields, _ := value.(map[string]any)
	elements, _ := value.([]any)
	inner := slices.AppendSeq(elements, maps.Values(fields))
	return holds(value) || slices.ContainsFunc(inner, func(value any) bool { return anyOf(value, holds) })
}

// LastDeclared returns the last declaration of a child as it is stored, or nil if it has none.
// Another client may have written it, so it has nothing but fields of the kind.
func (a *Applier) LastDeclared(live client.Object) client.Object {
	raw, declared := sanitizeRecord(live, a.recordOf(live)), emptyOf(live)
	gvk, err := apiutil.GVKForObject(live, a.Client.Scheme())
	if err != nil || string(raw) == noRecord || json.Unmarshal(raw, declared) != nil {
		return nil
	}

	declared.SetNamespace(live.GetNamespace())
	declared.SetName(live.GetName())
	declared.SetOwnerReferences(nil)
	declared.GetObjectKind().SetGroupVersionKind(gvk)
	return declared
}

// abbreviate returns a stored child with the abbreviated annotation of a declaration.
func (a *Applier) abbreviate(live client.Object) client.Object {
	head, _, isLonger := strings.Cut(live.GetAnnotations()[a.Abbreviated], " ")
	if !isLonger {
		return live
	}

	abbreviated := live.DeepCopyObject().(client.Object)
	abbreviated.GetAnnotations()[a.Abbreviated] = head
	return abbreviated
}

// AnnotationBytes returns the size of a child's annotations after a write, as the API server counts
// it: keys and values. The record of the declaration is an annotation with this key and contains
// the other annotations, so these count at least twice.
func AnnotationBytes(child client.Object, recordKey string) (int, error) {
	record, err := declaration(child)
	if err != nil {
		return 0, fmt.Errorf("failed to encode: %w", err)
	}

	size := len(recordKey) + len(record)
	for key, value := range child.GetAnnotations() {
		size += len(key) + len(value)
	}
	return size, nil
}
