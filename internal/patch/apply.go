package patch

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/filters/patchjson6902"
	"sigs.k8s.io/kustomize/api/filters/patchstrategicmerge"
	"sigs.k8s.io/kustomize/kyaml/kio"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds"
)

// Hits reports whether a patch targets a child.
func Hits(target v1alpha2.PatchTarget, child client.Object) bool {
	return target.Kind == child.GetObjectKind().GroupVersionKind().Kind && (target.Name == "" || target.Name == child.GetName())
}

// Apply returns the children with the patches applied in their order, or the errors. It does not
// change the given children.
func Apply(patches []v1alpha2.Patch, children []client.Object, path *field.Path) ([]client.Object, field.ErrorList) {
	if len(patches) == 0 {
		return children, nil
	}
	ready, errs := parse(patches, path)
	if len(errs) > 0 {
		return nil, errs
	}
	out := make([]client.Object, len(children))
	for at, child := range children {
		var hits []int
		for i := range patches {
			if Hits(patches[i].Target, child) {
				hits = append(hits, i)
			}
		}
		var faults field.ErrorList
		out[at], faults = applyAll(ready, hits, child, path)
		errs = append(errs, faults...)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return out, nil
}

// applyAll applies all patches of a child together, which is much cheaper than one at a time. If
// that fails, it finds the patch that caused the error.
func applyAll(ready []parsed, hits []int, child client.Object, path *field.Path) (client.Object, field.ErrorList) {
	if len(hits) == 0 {
		return child, nil
	}
	all := make([]parsed, len(hits))
	for at, i := range hits {
		all[at] = ready[i]
	}
	out, faults := apply(all, child)
	if len(faults) == 0 {
		return out, nil
	}
	blamed, before := hits[len(hits)-1], child
	for at, i := range hits {
		after, found := apply(all[at:at+1], before)
		if len(found) > 0 {
			blamed, faults = i, found
			break
		}
		before = after
	}
	var errs field.ErrorList
	for _, fault := range faults[:min(len(faults), maxFaults)] {
		errs = append(errs, invalid(path, blamed, fmt.Sprintf("%s: %s", child.GetObjectKind().GroupVersionKind().Kind, fault)))
	}
	return nil, errs
}

// apply returns the patched child, or the messages for the forbidden changes. If kustomize panics,
// the patch is rejected.
func apply(all []parsed, child client.Object) (out client.Object, faults []string) {
	defer func() {
		if recover() != nil {
			out, faults = nil, []string{"the patch cannot be applied: kustomize can make nothing of it; correct it"}
		}
	}()
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	if err != nil {
		return nil, []string{err.Error()}
	}
	raw, err := merge(all, before)
	if err != nil {
		return nil, []string{"the patch cannot be applied: " + err.Error()}
	}
	rules := kinds[child.GetObjectKind().GroupVersionKind().Kind]
	patched, err := decode(raw, rules.empty())
	if err != nil {
		return nil, []string{"what the patch makes of it cannot be read: " + err.Error()}
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

// merge applies patches with kustomize and returns the result as JSON.
func merge(all []parsed, child map[string]any) ([]byte, error) {
	node, err := kyaml.FromMap(child)
	if err != nil {
		return nil, err
	}
	nodes := []*kyaml.RNode{node}
	for _, one := range all {
		filter, err := one.filter()
		if err != nil {
			return nil, err
		}
		if nodes, err = filter.Filter(nodes); err != nil {
			return nil, err
		}
		if len(nodes) != 1 {
			return nil, errors.New("it deletes the object, which the operator makes again: remove the patch, or change a field")
		}
	}
	return nodes[0].MarshalJSON()
}

func (p parsed) filter() (kio.Filter, error) {
	if p.operations {
		return patchjson6902.Filter{Patch: string(p.raw)}, nil
	}
	var fields map[string]any
	if err := json.Unmarshal(p.raw, &fields); err != nil {
		return nil, err
	}
	patch, err := kyaml.FromMap(fields)
	if err != nil {
		return nil, err
	}
	return patchstrategicmerge.Filter{Patch: patch}, nil
}

// decode reads a patched child into an object of its kind. A field that the kind does not have is
// an error.
func decode(raw []byte, into client.Object) (client.Object, error) {
	fields, err := bounds.Read(raw)
	if err != nil {
		return nil, err
	}
	if err := readable(into, fields); err != nil {
		return nil, err
	}
	faults, err := kjson.UnmarshalStrict(raw, into)
	if err == nil {
		err = errors.Join(faults...)
	}
	return into, err
}
