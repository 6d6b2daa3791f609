// Package migrate makes a NginxOperator of what ran nginx before: a Deployment with its ConfigMap and Service, or a Nginx of
// tsuru/nginx-operator. docs/guide/coming-from.md is the mapping.
package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
)

// source is an object or a part of one, from which fields are taken one after the other. What is left at the end was not carried over.
type source struct {
	path   string
	fields map[string]any
	// lost collects what cannot be carried over.
	lost *[]string
}

func newSource(object *unstructured.Unstructured, lost *[]string) source {
	out := source{fmt.Sprintf("%s %s", object.GetKind(), object.GetName()), object.DeepCopy().Object, lost}
	// These say where the object is and what it was, not what it declares.
	out.drop("apiVersion", "kind", "status")
	for _, field := range []string{
		"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences",
	} {
		out.take("metadata", field)
	}
	for _, annotation := range []string{"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"} {
		out.take("metadata", "annotations", annotation)
	}
	return out
}

// take removes a field and returns it, nil where there is none.
func (s source) take(path ...string) any {
	inner := s.fields
	for _, name := range path[:len(path)-1] {
		next, isMap := inner[name].(map[string]any)
		if !isMap {
			return nil
		}
		inner = next
	}
	last := path[len(path)-1]
	out := inner[last]
	delete(inner, last)
	return out
}

// drop removes fields that the operator makes itself.
func (s source) drop(names ...string) {
	for _, name := range names {
		delete(s.fields, name)
	}
}

// in returns an inner object, which is taken by what takes its fields.
func (s source) in(path ...string) source {
	out := source{s.path, s.fields, s.lost}
	for _, name := range path {
		next, isMap := out.fields[name].(map[string]any)
		if !isMap {
			next = map[string]any{}
		}
		out = source{out.path + "." + name, next, s.lost}
	}
	return out
}

// list takes a list of objects.
func (s source) list(name string) []source {
	list, _ := s.take(name).([]any)
	var out []source
	for i, item := range list {
		if fields, isMap := item.(map[string]any); isMap {
			out = append(out, source{fmt.Sprintf("%s.%s[%d]", s.path, name, i), fields, s.lost})
		}
	}
	return out
}

// into moves a field into one of the same form. Fields that are not there are lost, one by one.
func (s source) into(target any, path ...string) {
	if value := s.take(path...); value != nil {
		s.decode(value, target, strings.Join(path, "."))
	}
}

// all moves all fields into an object of the same form.
func (s source) all(target any) {
	s.decode(s.fields, target, "")
	clear(s.fields)
}

func (s source) decode(value, target any, field string) {
	raw, err := json.Marshal(value)
	var unknown []error
	if err == nil {
		unknown, err = kjson.UnmarshalStrict(raw, target)
	}
	if err != nil {
		unknown = append(unknown, err)
	}
	for _, problem := range unknown {
		if _, name, found := strings.Cut(problem.Error(), `unknown field "`); found {
			name = strings.TrimSuffix(name, `"`)
			s.lose(strings.TrimPrefix(field+"."+name, "."), whyNot(name[strings.LastIndex(name, ".")+1:]))
			continue
		}
		s.lose(field, problem.Error())
	}
}

// lose notes that a field was not carried over.
func (s source) lose(field, why string) {
	*s.lost = append(*s.lost, strings.TrimSuffix(s.path+"."+field, ".")+": "+why)
}

// text takes a text.
func (s source) text(path ...string) string {
	out, _ := s.take(path...).(string)
	return out
}

// rest notes all that is left.
func (s source) rest() {
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		value := s.fields[name]
		if inner, isMap := value.(map[string]any); isMap && hints[name] == "" {
			source{s.path + "." + name, inner, s.lost}.rest()
			continue
		}
		if isNothing(value) {
			continue
		}
		s.lose(name, whyNot(name))
	}
}

// whyNot says where a field belongs that was not carried over.
func whyNot(name string) string {
	return cmp.Or(hints[name], "it has no field of its own; see spec.patches")
}

// isNothing reports whether a value says nothing.
func isNothing(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	case string:
		return value == ""
	}
	return false
}
