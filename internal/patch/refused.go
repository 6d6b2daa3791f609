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
	all, errs := parse(patches, path)
	if len(errs) > 0 {
		return nil
	}

	var refusals []ratchet.Refusal
	for _, child := range children {
		hits := hitting(all, child)
		for _, made := range changesOf(hits, child) {
			refusals = append(refusals, ratchet.Refusal{
				Err: invalid(path, culprit(hits, child, made).index,
					fmt.Sprintf("%s: a patch cannot change %s; %s", made.kind, made.field, made.instead)),
				Value: made.kind + "\x00" + made.field + "\x00" + made.value,
			})
		}
	}

	return refusals
}

// culprit returns the first patch after which a child has a change.
func culprit(hits []parsed, child client.Object, made change) parsed {
	last := len(hits) - 1
	for at := range last {
		if slices.Contains(changesOf(hits[:at+1], child), made) {
			return hits[at]
		}
	}
	return hits[last]
}

// changesOf returns the changes of ratcheted fields by several patches together.
func changesOf(hits []parsed, child client.Object) []change {
	fields := kinds[kindOf(child)].ratcheted
	if len(hits) == 0 || len(fields) == 0 {
		return nil
	}

	patched, faults := apply(hits, child)
	if len(faults) > 0 {
		return nil
	}

	before, errBefore := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	after, errAfter := runtime.DefaultUnstructuredConverter.ToUnstructured(patched)
	if errBefore != nil || errAfter != nil {
		return nil
	}

	var changes []change
	for _, own := range fields {
		for _, value := range newValues(get(before, own.field), get(after, own.field)) {
			// The status stores hashes of the values, so their form must not change.
			raw, err := json.Marshal(value)
			if err != nil {
				raw = fmt.Append(nil, value)
			}
			if made := (change{kindOf(child), own.field, own.instead, string(raw)}); !slices.Contains(changes, made) {
				changes = append(changes, made)
			}
		}
	}

	return changes
}

// newValues returns the elements of a list that were not in it before. For other types, it returns
// the value if it differs.
func newValues(before, after any) []any {
	_, isList := after.([]any)
	switch {
	case isList:
		return missing(before, after)
	case reflect.DeepEqual(before, after):
		return nil
	}
	return []any{after}
}
