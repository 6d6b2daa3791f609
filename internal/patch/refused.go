package patch

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/ratchet"
)

// change is a value that patches set in a ratcheted field of a child: an element of a list, or the
// field itself.
type change struct{ kind, field, instead, value string }

// Refused returns the changes to the children that are refused in new patches, but allowed in
// patches of stored objects. It returns nothing if the patches cannot be applied, because Apply
// reports that.
func Refused(patches []v1alpha2.Patch, children []client.Object, path *field.Path) []ratchet.Refusal {
	ready, errs := parse(patches, path)
	if len(errs) > 0 {
		return nil
	}
	var out []ratchet.Refusal
	for _, child := range children {
		var hits []int
		for i := range patches {
			if Hits(patches[i].Target, child) {
				hits = append(hits, i)
			}
		}
		for _, made := range changesOf(ready, hits, child) {
			at := culprit(ready, hits, child, made)
			out = append(out, ratchet.Refusal{
				Err:   invalid(path, at, fmt.Sprintf("%s: a patch cannot change %s: %s", made.kind, made.field, made.instead)),
				Value: made.kind + "\x00" + made.field + "\x00" + made.value,
			})
		}
	}
	return out
}

// culprit returns the index of the first patch after which a child has a change.
func culprit(ready []parsed, hits []int, child client.Object, made change) int {
	last := len(hits) - 1
	for at := range last {
		if slices.Contains(changesOf(ready, hits[:at+1], child), made) {
			return hits[at]
		}
	}
	return hits[last]
}

// changesOf returns the changes of ratcheted fields by several patches together.
func changesOf(ready []parsed, hits []int, child client.Object) []change {
	kind := child.GetObjectKind().GroupVersionKind().Kind
	fields := kinds[kind].ratcheted
	if len(hits) == 0 || len(fields) == 0 {
		return nil
	}
	of := make([]parsed, len(hits))
	for at, i := range hits {
		of[at] = ready[i]
	}
	patched, faults := apply(of, child)
	if len(faults) > 0 {
		return nil
	}
	before, errBefore := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	after, errAfter := runtime.DefaultUnstructuredConverter.ToUnstructured(patched)
	if errBefore != nil || errAfter != nil {
		return nil
	}
	var out []change
	for _, own := range fields {
		for _, value := range newValues(get(before, own.field), get(after, own.field)) {
			raw, err := json.Marshal(value)
			if err != nil {
				raw = fmt.Append(nil, value)
			}
			if made := (change{kind, own.field, own.instead, string(raw)}); !slices.Contains(out, made) {
				out = append(out, made)
			}
		}
	}
	return out
}

// newValues returns the elements of a list that were not in it before. For other types, it returns
// the value if it differs.
func newValues(before, after any) []any {
	list, isList := after.([]any)
	if !isList {
		if reflect.DeepEqual(before, after) {
			return nil
		}
		return []any{after}
	}
	known, _ := before.([]any)
	return slices.DeleteFunc(slices.Clone(list), func(element any) bool {
		return slices.ContainsFunc(known, func(one any) bool { return reflect.DeepEqual(one, element) })
	})
}
