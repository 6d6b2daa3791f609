// Package migrate converts a Deployment with its ConfigMaps and Service, or an Nginx of
// tsuru/nginx-operator, into an NginxOperator. docs/guide/coming-from.md has the field mapping.
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

// hints are the advice for fields without an equivalent.
var hints = map[string]string{
	"command":         "the operator starts nginx; move settings to spec.nginx or spec.config",
	"args":            "the operator starts nginx; move settings to spec.nginx or spec.config",
	"envFrom":         "list each variable in spec.env",
	"hostNetwork":     "Pod Security restricted forbids it; use spec.service.type NodePort or LoadBalancer",
	"hostPort":        "Pod Security restricted forbids it; use spec.service.type NodePort or LoadBalancer",
	"securityContext": "the operator sets its own; for user and group IDs, see spec.securityContext",
	"loadBalancerIP":  "Kubernetes deprecated it; use an annotation of your load balancer in spec.service.annotations",
	"hostPath":        "Pod Security restricted forbids it; for alternatives, see spec.volumes",
	"postStart":       "use spec.initContainers or spec.sidecars",
}

// source is an object or a part of it. The conversion takes fields from it. Fields that remain at
// the end have no equivalent.
type source struct {
	path   string
	fields map[string]any
	// lost collects the fields without an equivalent.
	lost *[]string
}

func newSource(object *unstructured.Unstructured, lost *[]string) source {
	out := source{fmt.Sprintf("%s %s", object.GetKind(), object.GetName()), object.DeepCopy().Object, lost}
	// These fields identify the object or record its history.
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

// in returns an inner object, without removing it.
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

// lose records a field without an equivalent.
func (s source) lose(field, why string) {
	*s.lost = append(*s.lost, strings.TrimSuffix(s.path+"."+field, ".")+": "+why)
}

// text takes a string.
func (s source) text(path ...string) string {
	out, _ := s.take(path...).(string)
	return out
}

// rest records all remaining fields as lost.
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

// whyNot returns the advice for a field without an equivalent.
func whyNot(name string) string {
	return cmp.Or(hints[name], "no field supports it; see spec.patches")
}

// isNothing reports whether a value is empty.
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
