package preview

import (
	"errors"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// Diff returns a unified diff of two texts of whole lines, or "" if they are equal.
func Diff(fromName, from, toName, to string) (string, error) {
	if from == to {
		return "", nil
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: slices.Collect(strings.Lines(from)), B: slices.Collect(strings.Lines(to)),
		FromFile: fromName, ToFile: toName, Context: 3,
	})
}

// Compare returns the unified diff of the YAML of two states of an object, or "" if they are equal.
// One of them can be nil.
func Compare(before, after *unstructured.Unstructured) (string, error) {
	before, after = shown(before), shown(after)
	mask(before, after)

	from, errFrom := text(before)
	to, errTo := text(after)
	if err := errors.Join(errFrom, errTo); err != nil {
		return "", err
	}
	return Diff("live", from, "planned", to)
}

func shown(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}

	object = object.DeepCopy()
	for _, path := range notOfInterest {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	if len(object.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
	}
	return object
}

// mask hides the values of Secrets, but shows which keys differ.
func mask(before, after *unstructured.Unstructured) {
	for _, field := range []string{"data", "stringData"} {
		from, to := valuesOf(before, field), valuesOf(after, field)
		var changed []string
		for key, value := range from {
			if planned, isPlanned := to[key]; isPlanned && planned != value {
				changed = append(changed, key)
			}
		}

		for _, values := range []map[string]any{from, to} {
			for key := range values {
				values[key] = "***"
			}
		}

		for _, key := range changed {
			from[key], to[key] = "*** (before)", "*** (after)"
		}
	}
}

// valuesOf returns a field of a Secret, or nil for other objects.
func valuesOf(object *unstructured.Unstructured, field string) map[string]any {
	if object == nil || object.GetKind() != "Secret" || object.GetAPIVersion() != "v1" {
		return nil
	}
	values, _ := object.Object[field].(map[string]any)
	return values
}

func text(object *unstructured.Unstructured) (string, error) {
	if object == nil {
		return "", nil
	}
	raw, err := printer.YAML(object.Object)
	return string(raw), err
}
