package preview

import (
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/internal/wellknown"
)

// notOfInterest are fields that change with each write or duplicate other fields.
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
	{"metadata", "annotations", wellknown.AnnotationFirstDeclaration},
}

// contextLines is the number of unchanged lines around a difference.
const contextLines = 3

// Diff returns a unified diff of two texts, or "" if they are equal.
func Diff(fromName, from, toName, to string) (string, error) {
	if from == to {
		return "", nil
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(from), B: lines(to), FromFile: fromName, ToFile: toName, Context: contextLines,
	})
}

// lines returns the lines of a text, each with a line feed at its end.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, strings.TrimSuffix(line, "\n")+"\n")
	}
	return out
}

// Compare returns the unified diff of the YAML of two states of an object, or "" if they are equal.
// One of them can be nil.
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

// shown returns an object without the fields that a diff omits.
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

// mask hides the values of Secrets, but shows which keys differ.
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

// valuesOf returns a field of a Secret, or nil for other objects.
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
	raw, err := printer.YAML(object.Object)
	if err != nil {
		return "", fmt.Errorf("failed to encode %s: %w", object.GetName(), err)
	}
	return string(raw), nil
}

// toUnstructured returns a child with its kind, which typed clients omit.
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
