// Package migrate converts a Deployment with its ConfigMaps and Service, an Nginx of
// tsuru/nginx-operator, or an nginx.conf into an NginxOperator. docs/guide/coming-from.md has the
// field mapping.
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

// source is an object from which the conversion takes fields. The rest has no equivalent.
type source struct {
	path   string
	fields map[string]any
	notes  *notes
}

// newSource omits the fields that identify the object or record its history.
func newSource(object *unstructured.Unstructured, notes *notes) source {
	from := source{fmt.Sprintf("%s %s", object.GetKind(), object.GetName()), object.DeepCopy().Object, notes}
	from.drop("apiVersion", "kind", "status")
	from.in("metadata").drop(
		"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences",
		"finalizers", // of controllers, for example for the load balancer of a Service
	)

	from.in("metadata", "annotations").drop(
		"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision",
	)
	return from
}

func (s source) take(path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(s.fields, path...)
	unstructured.RemoveNestedField(s.fields, path...)
	return value
}

func (s source) text(path ...string) string {
	text, _ := s.take(path...).(string)
	return text
}

// drop removes fields that need no equivalent, for example because the operator sets them.
func (s source) drop(names ...string) {
	for _, name := range names {
		delete(s.fields, name)
	}
}

// dropDefault removes fields with these values: defaults of the API server or of the operator.
func (s source) dropDefault(values map[string]any) {
	maps.DeleteFunc(s.fields, func(name string, value any) bool {
		byDefault, hasDefault := values[name]
		return hasDefault && value == byDefault
	})
}

func (s source) in(path ...string) source {
	value, _, _ := unstructured.NestedFieldNoCopy(s.fields, path...)
	fields, isMap := value.(map[string]any)
	if !isMap {
		fields = map[string]any{}
	}
	return source{s.path + "." + strings.Join(path, "."), fields, s.notes}
}

func (s source) list(name string) []source {
	list, _ := s.take(name).([]any)
	var objects []source
	for i, item := range list {
		if fields, isMap := item.(map[string]any); isMap {
			objects = append(objects, source{fmt.Sprintf("%s.%s[%d]", s.path, name, i), fields, s.notes})
		}
	}

	return objects
}

// into decodes a field into a target of the same form. Inner fields that the target lacks are lost.
func (s source) into(target any, path ...string) {
	if value := s.take(path...); value != nil {
		field := strings.Join(path, ".")
		s.decode(value, target, field, field)
	}
}

func (s source) pick(target any, names ...string) {
	for _, name := range names {
		if value := s.take(name); value != nil {
			s.decode(map[string]any{name: value}, target, "", name)
		}
	}
}

func (s source) all(target any) {
	s.decode(s.fields, target, "", "")
	clear(s.fields)
}

// decode decodes the value of a field, whose inner fields have the prefix.
func (s source) decode(value, target any, prefix, field string) {
	raw, err := json.Marshal(withoutUnset(value))
	var unknown []error
	if err == nil {
		unknown, err = kjson.UnmarshalStrict(raw, target)
	}
	for _, problem := range unknown {
		_, name, _ := strings.Cut(strings.TrimSuffix(problem.Error(), `"`), `unknown field "`)
		s.lose(strings.TrimPrefix(prefix+"."+name, "."), whyNot(name[strings.LastIndex(name, ".")+1:]))
	}
	if err != nil {
		s.lose(field, err.Error())
	}
}

// withoutUnset omits inner fields that are null or false, which both mean that they are not set.
func withoutUnset(value any) any {
	switch value := value.(type) {
	case map[string]any:
		set := map[string]any{}
		for name, inner := range value {
			if inner != nil && inner != false {
				set[name] = withoutUnset(inner)
			}
		}
		return set
	case []any:
		list := make([]any, len(value))
		for i, inner := range value {
			list[i] = withoutUnset(inner)
		}
		return list
	}
	return value
}

func (s source) lose(field, why string) {
	s.notes.Lost = append(s.notes.Lost, strings.TrimSuffix(s.path+"."+field, ".")+": "+why)
}

func (s source) rest() { s.restBecause("") }

// restBecause is rest with the advice for fields that have no hint.
func (s source) restBecause(why string) {
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		inner, isMap := s.fields[name].(map[string]any)
		switch {
		case isMap && hints[name] == "":
			source{s.path + "." + name, inner, s.notes}.restBecause(why)
		case !isNothing(s.fields[name]):
			s.lose(name, cmp.Or(hints[name], why, whyNot(name)))
		}
	}
}

// isNothing reports whether a value has the same meaning as no value.
func isNothing(value any) bool {
	switch value := value.(type) {
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return value == nil || value == "" || value == false
}

// Advice for more than one field.
const (
	restricted  = "the operator's Pods comply with Pod Security restricted; set values that restricted allows with spec.patches"
	noHost      = "Pod Security restricted forbids it; use spec.service.type NodePort or LoadBalancer"
	ownCommand  = "the operator starts nginx; move settings to spec.nginx or spec.config"
	onlyHTTP    = "the operator serves HTTP only"
	onlyTCP     = "the operator serves HTTP over TCP only"
	noEntry     = "the operator does not run the entry point of the image, which reads these files; write the result to spec.config"
	template    = "the operator does not run the entry point, which fills in templates; move them to spec.config, with spec.config.values"
	byPatch     = "no field supports it; mount the volume with spec.patches instead of spec.volumes"
	operators   = "the operator sets its own"
	ownMain     = "the operator has its own nginx.conf; copy the content of the http block to spec.config, and the rest to spec.nginx"
	notIncluded = "the operator's nginx.conf does not include files of this directory; move them to spec.config"
)

var hints = map[string]string{
	"command":                      ownCommand,
	"args":                         ownCommand,
	"envFrom":                      "list each variable in spec.env",
	"hostNetwork":                  noHost,
	"hostPort":                     noHost,
	"hostIP":                       noHost,
	"hostPID":                      restricted,
	"hostIPC":                      restricted,
	"loadBalancerIP":               "Kubernetes deprecated it; use an annotation of your load balancer in spec.service.annotations",
	"hostPath":                     "Pod Security restricted forbids it; for alternatives, see spec.volumes",
	"postStart":                    "use spec.initContainers or spec.sidecars",
	"preStop":                      "the operator waits for open connections itself; see spec.drainSeconds",
	"usePodSelector":               "the operator's Service always selects the Pods",
	"imagePullPolicy":              "the operator sets IfNotPresent; use an image with a version or a digest, or see spec.patches",
	"automountServiceAccountToken": "the token is not mounted; if a container needs it, add a projected volume to spec.volumes",
	"revisionHistoryLimit":         "the operator sets its own; for the revision that it can restore, see status.lastGoodRevision",
	"paused":                       "the operator manages the Deployment; see spec.paused",
	"hostUsers":                    "no field supports it; see spec.patches",
	"publishNotReadyAddresses":     "the operator's Service has only ready Pods",
	"externalIPs":                  "neither a field nor spec.patches can set it; create a Service with it yourself",
	"externalName":                 "the operator's Service selects the Pods",
	"stopSignal":                   "the operator stops nginx gracefully; see spec.drainSeconds",
	"terminationMessagePath":       operators,
	"restartPolicy":                operators,
	"restartPolicyRules":           operators,
	"mountPropagation":             byPatch,
	"recursiveReadOnly":            byPatch,
	"subPathExpr":                  byPatch,
	"bindMountOptions":             byPatch,
}

func whyNot(name string) string {
	return cmp.Or(hints[name], "no field supports it; see spec.patches")
}
