// Package migrate converts a Deployment with its ConfigMaps and Service, or an Nginx of
// tsuru/nginx-operator, into an NginxOperator. docs/guide/coming-from.md has the field mapping.
package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
)

// source is an object or a part of it. The conversion takes fields from it. Fields that remain at
// the end have no equivalent.
type source struct {
	path   string
	fields map[string]any
	// notes collects the fields without an equivalent.
	notes *notes
}

// newSource returns the source of a manifest without the fields that identify the object or record
// its history.
func newSource(object *unstructured.Unstructured, notes *notes) source {
	out := source{fmt.Sprintf("%s %s", object.GetKind(), object.GetName()), object.DeepCopy().Object, notes}
	out.drop("apiVersion", "kind", "status")
	for _, field := range []string{
		"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences",
		"finalizers", // of controllers, for example for the load balancer of a Service
	} {
		out.take("metadata", field)
	}
	for _, annotation := range []string{"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"} {
		out.take("metadata", "annotations", annotation)
	}
	return out
}

// take removes a field and returns its value, or nil if it does not exist.
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

// drop removes fields that need no equivalent, for example because the operator sets them.
func (s source) drop(names ...string) {
	for _, name := range names {
		delete(s.fields, name)
	}
}

// dropDefault removes fields that have the value in a map, which is the API server's default or the
// operator's value.
func (s source) dropDefault(values map[string]any) {
	for name, value := range values {
		if s.fields[name] == value {
			delete(s.fields, name)
		}
	}
}

// in returns an inner object, without removing it.
func (s source) in(path ...string) source {
	out := s
	for _, name := range path {
		next, isMap := out.fields[name].(map[string]any)
		if !isMap {
			next = map[string]any{}
		}
		out = source{out.path + "." + name, next, s.notes}
	}
	return out
}

// list takes a list of objects.
func (s source) list(name string) []source {
	list, _ := s.take(name).([]any)
	var out []source
	for i, item := range list {
		if fields, isMap := item.(map[string]any); isMap {
			out = append(out, source{fmt.Sprintf("%s.%s[%d]", s.path, name, i), fields, s.notes})
		}
	}
	return out
}

// into decodes a field into a target of the same form. Inner fields that the target lacks are lost.
func (s source) into(target any, path ...string) {
	if value := s.take(path...); value != nil {
		s.decode(value, target, strings.Join(path, "."))
	}
}

// all decodes all fields into a target of the same form.
func (s source) all(target any) {
	s.decode(s.fields, target, "")
	clear(s.fields)
}

func (s source) decode(value, target any, field string) {
	raw, err := json.Marshal(withoutUnset(value))
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

// withoutUnset returns a value without the inner fields that are null or false. In the fields that
// are decoded, both mean that the field is not set.
func withoutUnset(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range value {
			if inner != nil && inner != false {
				out[name] = withoutUnset(inner)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, inner := range value {
			out[i] = withoutUnset(inner)
		}
		return out
	}
	return value
}

// lose records a field without an equivalent.
func (s source) lose(field, why string) {
	s.notes.Lost = append(s.notes.Lost, strings.TrimSuffix(s.path+"."+field, ".")+": "+why)
}

// text takes a string.
func (s source) text(path ...string) string {
	out, _ := s.take(path...).(string)
	return out
}

// rest records all remaining fields as lost.
func (s source) rest() { s.restBecause("") }

// restBecause is rest with the advice for fields that have no hint.
func (s source) restBecause(why string) {
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		value := s.fields[name]
		if inner, isMap := value.(map[string]any); isMap && hints[name] == "" {
			source{s.path + "." + name, inner, s.notes}.restBecause(why)
			continue
		}
		if isNothing(value) {
			continue
		}
		if hints[name] == "" && why != "" {
			s.lose(name, why)
			continue
		}
		s.lose(name, whyNot(name))
	}
}

// isNothing reports whether a value has the same meaning as no value.
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
	case bool:
		return !value
	}
	return false
}
