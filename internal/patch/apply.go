package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/filters/patchjson6902"
	"sigs.k8s.io/kustomize/api/filters/patchstrategicmerge"
	"sigs.k8s.io/kustomize/kyaml/kio"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/ratchet"
	"github.com/example/nginx-operator/pkg/bounds"
)

// Hits reports whether a patch targets a child.
func Hits(target v1alpha2.PatchTarget, child client.Object) bool {
	return target.Kind == kindOf(child) && (target.Name == "" || target.Name == child.GetName())
}

func kindOf(child client.Object) string { return child.GetObjectKind().GroupVersionKind().Kind }

// Apply returns the children with the patches in their order, or errors. It changes no argument.
func Apply(patches []v1alpha2.Patch, children []client.Object, path *field.Path) ([]client.Object, field.ErrorList) {
	all, errs := parse(patches, path)
	if len(errs) > 0 {
		return nil, errs
	}

	patched := make([]client.Object, len(children))
	for at, child := range children {
		var own field.ErrorList
		patched[at], own = applyAll(hitting(all, child), child, path)
		errs = append(errs, own...)
	}

	if len(errs) > 0 {
		return nil, errs
	}
	return patched, nil
}

func hitting(all []parsed, child client.Object) []parsed {
	return slices.DeleteFunc(slices.Clone(all), func(p parsed) bool { return !Hits(p.target, child) })
}

// applyAll applies all patches of a child together, which is cheaper, unless one fails.
func applyAll(hits []parsed, child client.Object, path *field.Path) (client.Object, field.ErrorList) {
	if len(hits) == 0 {
		return child, nil
	}

	patched, faults := apply(hits, child)
	if len(faults) == 0 {
		return patched, nil
	}

	culprit, before := hits[len(hits)-1], child
	for at := range hits {
		after, own := apply(hits[at:at+1], before)
		if len(own) > 0 {
			culprit, faults = hits[at], own
			break
		}
		before = after
	}

	var errs field.ErrorList
	for _, fault := range faults[:min(len(faults), maxFaults)] {
		errs = append(errs, invalid(path, culprit.index, kindOf(child)+": "+fault))
	}

	return nil, errs
}

// apply returns the patched child, or messages, also if kustomize panics.
func apply(patches []parsed, child client.Object) (patched client.Object, faults []string) {
	defer func() {
		if cause := recover(); cause != nil {
			patched, faults = nil, []string{notApplied(patches, child, cause)}
		}
	}()

	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	if err != nil {
		return nil, []string{err.Error()}
	}

	raw, err := merge(patches, before)
	if err != nil {
		return nil, []string{notApplied(patches, child, err)}
	}

	rules := kinds[kindOf(child)]
	patched = rules.empty()
	if err := decode(raw, patched); err != nil {
		return nil, []string{fmt.Sprintf("the result cannot be handled as a %s: %v", kindOf(child), err)}
	}
	if faults := tidy(child, patched); len(faults) > 0 {
		return nil, faults
	}

	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(patched)
	if err != nil {
		return nil, []string{err.Error()}
	}
	if faults := rules.changed(before, after); len(faults) > 0 {
		return nil, faults
	}

	return patched, lessSecure(child, patched)
}

var errDeletes = errors.New("a patch cannot delete a child; remove `$patch: delete`")

// notApplied returns the message about a patch that kustomize cannot apply. kustomize's reason has
// the operation and the path of a JSON patch, but no path of a strategic merge patch.
func notApplied(patches []parsed, child client.Object, cause any) string {
	reason := fmt.Sprint(cause)
	if reason == errDeletes.Error() {
		return reason
	}

	reason, _, _ = strings.Cut(reason, ": node contents:")
	last := patches[len(patches)-1]
	if fields := map[string]any{}; !last.operations && json.Unmarshal(last.raw, &fields) == nil {
		if path := misplaced(reflect.TypeOf(child), fields, ""); path != "" {
			reason = path + ": " + reason
		}
	}
	return "kustomize cannot apply the patch: " + reason
}

func merge(patches []parsed, child map[string]any) ([]byte, error) {
	node, err := kyaml.FromMap(child)
	if err != nil {
		return nil, err
	}

	nodes := []*kyaml.RNode{node}
	for _, p := range patches {
		filter, err := p.filter()
		if err != nil {
			return nil, err
		}
		if nodes, err = filter.Filter(nodes); err != nil {
			return nil, err
		}
		if len(nodes) != 1 {
			return nil, errDeletes
		}
	}

	return nodes[0].MarshalJSON()
}

func (p parsed) filter() (kio.Filter, error) {
	if p.operations {
		return patchjson6902.Filter{Patch: string(p.raw)}, nil
	}
	patch, err := kyaml.ConvertJSONToYamlNode(string(p.raw))
	return patchstrategicmerge.Filter{Patch: patch}, err
}

// decode reads a patched child. A field that its kind does not have is an error.
func decode(raw []byte, into client.Object) error {
	fields, err := bounds.Read(raw)
	if err != nil {
		return err
	}
	if err := readable(reflect.TypeOf(into), fields, ""); err != nil {
		return err
	}

	faults, err := kjson.UnmarshalStrict(raw, into)
	if err == nil && len(faults) > 0 {
		err = runtime.NewStrictDecodingError(faults)
	}
	return err
}

// change is a new value of a ratcheted field, or a new element of a ratcheted list.
type change struct{ kind, field, instead, value string }

// Refused returns the changes that are refused in new patches, but allowed in stored ones. It
// returns nothing if the patches cannot be applied, because Apply reports that.
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

func culprit(hits []parsed, child client.Object, made change) parsed {
	last := len(hits) - 1
	for at := range last {
		if slices.Contains(changesOf(hits[:at+1], child), made) {
			return hits[at]
		}
	}
	return hits[last]
}

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

// newValues returns the new elements of a list, or another value if it differs.
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
