package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness/mutate"
)

// recordOf returns the last declared state of a child, from the record on the child.
func recordOf(t *testing.T, child client.Object) map[string]any {
	t.Helper()
	out := map[string]any{}
	must(t, json.Unmarshal([]byte(child.GetAnnotations()[wellknown.AnnotationLastDeclared]), &out))
	return out
}

// all returns the children that exist.
func (c children) all() []client.Object {
	out := []client.Object{c.deployment, c.service}
	if c.policy != nil {
		out = append(out, c.policy)
	}
	if c.budget != nil {
		out = append(out, c.budget)
	}
	if c.autoscaler != nil {
		out = append(out, c.autoscaler)
	}
	if c.ingress != nil {
		out = append(out, c.ingress)
	}
	if c.route != nil {
		out = append(out, c.route)
	}
	if c.monitor != nil {
		out = append(out, c.monitor)
	}
	if c.rule != nil {
		out = append(out, c.rule)
	}
	for i := range c.configMaps {
		out = append(out, &c.configMaps[i])
	}
	return out
}

// leaves returns the paths of all values that are neither a map nor a list of maps.
func leaves(value any, path []any) [][]any {
	var out [][]any
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if len(path) == 1 && path[0] == "metadata" && slices.Contains([]string{"name", "namespace", "ownerReferences"}, key) {
				continue // a change makes it another object, or an object of another owner
			}
			out = append(out, leaves(inner, append(path[:len(path):len(path)], key))...)
		}
		return out
	case []any:
		for i, inner := range value {
			if _, isMap := inner.(map[string]any); isMap {
				out = append(out, leaves(inner, append(path[:len(path):len(path)], i))...)
			}
		}
		if out != nil {
			return out
		}
	}
	return [][]any{path}
}

// isListKey reports whether a path ends in the field by which the API server identifies the
// elements of a list.
func isListKey(path []any) bool {
	if len(path) < 2 {
		return false
	}
	_, inList := path[len(path)-2].(int)
	return inList && slices.Contains([]any{"name", "mountPath", "containerPort", "port"}, path[len(path)-1])
}

// elements returns the value of the key at the end of the path for every element of the list.
func elements(object any, path []any) ([]any, error) {
	list, _ := mutate.At(object, path[:len(path)-2])
	items, ok := list.([]any)
	if !ok {
		return nil, fmt.Errorf("no list at %v", path)
	}
	var out []any
	for _, item := range items {
		value, _ := mutate.At(item, path[len(path)-1:])
		out = append(out, value)
	}
	return out, nil
}

// set writes a value at a path whose parent exists. A nil value removes a map key.
func set(value any, path []any, to any) {
	parent, _ := mutate.At(value, path[:len(path)-1])
	switch last := path[len(path)-1].(type) {
	case string:
		if to == nil {
			delete(parent.(map[string]any), last)
		} else {
			parent.(map[string]any)[last] = to
		}
	case int:
		parent.([]any)[last] = to
	}
}

// another returns a different value of the same type that is likely to be valid.
func another(value any) any {
	switch value := value.(type) {
	case bool:
		return !value
	case int64:
		return value + 1
	case float64:
		return value + 1
	case string:
		others := map[string]string{
			"IfNotPresent": "Always", "ClusterIP": "NodePort", "FallbackToLogsOnError": "File", "TCP": "UDP", "25%": "50%",
			"RuntimeDefault": "Unconfined", "AlwaysAllow": "IfHealthyBudget", "Local": "Cluster", "ScheduleAnyway": "DoNotSchedule",
			"LoadBalancer": "NodePort", "NoSchedule": "NoExecute", "In": "NotIn",
		}
		if other, ok := others[value]; ok {
			return other
		}
		if quantity, err := resource.ParseQuantity(value); err == nil {
			quantity.Add(resource.MustParse("1"))
			return quantity.String()
		}
		return value + "x"
	case []any:
		return append([]any{"drift"}, value...)
	}
	return value
}
