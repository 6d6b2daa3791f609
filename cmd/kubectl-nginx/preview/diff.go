package preview

import (
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/internal/wellknown"
)

// notOfInterest are fields that change with each write, or that repeat others.
var notOfInterest = [][]string{
	{"status"},
	{"metadata", "creationTimestamp"},
	{"metadata", "generation"},
	{"metadata", "managedFields"},
	{"metadata", "ownerReferences"},
	{"metadata", "resourceVersion"},
	{"metadata", "uid"},
	{"metadata", "annotations", lastApplied},
	{"metadata", "annotations", wellknown.AnnotationLastDeclared},
}

// contextLines is how many equal lines are shown around a difference.
const contextLines = 3

// Diff returns a unified diff of two texts, "" where they are the same.
func Diff(fromName, from, toName, to string) (string, error) {
	if from == to {
		return "", nil
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(from), B: lines(to), FromFile: fromName, ToFile: toName, Context: contextLines,
	})
}

// lines returns the lines of a text, each with its end.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, strings.TrimSuffix(line, "\n")+"\n")
	}
	return out
}

// Compare returns the differences between two states of an object as a unified diff of their YAML, "" where there are none. One of them may
// be nil.
func Compare(before, after *unstructured.Unstructured) (string, error) {
	before, after = shown(before), shown(after)
	mask(before, after)
	from, err := text(before)
	if err != nil {
		return "", err
	}
	to, err := text(after)
	if err != nil {
		return "", err
	}
	return Diff("live", from, "planned", to)
}

// shown returns what is shown of an object.
func shown(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	out := object.DeepCopy()
	for _, path := range notOfInterest {
		unstructured.RemoveNestedField(out.Object, path...)
	}
	if len(out.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(out.Object, "metadata", "annotations")
	}
	return out
}

// mask hides what Secrets hold, and leaves to be seen what differs.
func mask(before, after *unstructured.Unstructured) {
	for _, field := range []string{"data", "stringData"} {
		old, now := valuesOf(before, field), valuesOf(after, field)
		for key, value := range old {
			old[key] = "***"
			if other, found := now[key]; found && other != value {
				old[key], now[key] = "*** (before)", "*** (after)"
			} else if found {
				now[key] = "***"
			}
		}
		for key := range now {
			if _, found := old[key]; !found {
				now[key] = "***"
			}
		}
	}
}

// valuesOf returns a field of a Secret, nil of anything else.
func valuesOf(object *unstructured.Unstructured, field string) map[string]any {
	if object == nil || object.GetKind() != "Secret" || object.GetAPIVersion() != "v1" {
		return nil
	}
	found, _ := object.Object[field].(map[string]any)
	return found
}

func text(object *unstructured.Unstructured) (string, error) {
	if object == nil {
		return "", nil
	}
	raw, err := yaml.Marshal(object.Object)
	if err != nil {
		return "", fmt.Errorf("failed to encode %s: %w", object.GetName(), err)
	}
	return string(raw), nil
}

// toUnstructured returns a child with its kind, which a client leaves out.
func (d *dryRuns) toUnstructured(object client.Object) (*unstructured.Unstructured, error) {
	gvk, err := d.GroupVersionKindFor(object)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("failed to encode %s: %w", object.GetName(), err)
	}
	out := &unstructured.Unstructured{Object: content}
	out.SetGroupVersionKind(gvk)
	return out, nil
}
