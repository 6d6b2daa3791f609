package preview

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/internal/wellknown"
)

// Plan has the changes that manifests would make. `kubectl nginx plan -o json` prints its JSON
// form, which docs/guide/kubectl-nginx.md documents.
type Plan struct {
	Objects []Object `json:"objects"`
	// Warnings are the warnings of admission.
	Warnings []string `json:"warnings,omitempty"`
}

// Differs reports whether anything would change.
func (p *Plan) Differs() bool {
	return slices.ContainsFunc(p.Objects, func(object Object) bool {
		return object.Action != None || len(object.Children) > 0
	})
}

// Actions of a Change.
const (
	Create = "create"
	Update = "update"
	Delete = "delete"
	None   = "none"
)

// Change is a change of an object.
type Change struct {
	Action     string `json:"action"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Diff is a unified diff of the YAML, or "" if nothing changes.
	Diff string `json:"diff,omitempty"`
	// Unchecked is true if the user lacks the permission, so the API server checked nothing.
	Unchecked bool `json:"unchecked,omitempty"`
}

// Object is the change of an object of a manifest. The other fields are those of an NginxOperator.
type Object struct {
	Change `json:",inline"`

	// BlockedBy lists the reasons not to apply the spec, as in status.blockedBy.
	BlockedBy []v1alpha2.Blocker `json:"blockedBy,omitempty"`
	Children  []Change           `json:"children,omitempty"`
	// Pods is the effect on the Pods, or nil for other kinds.
	Pods *Pods `json:"pods,omitempty"`
	// Paused is true if the operator changes no child object until spec.paused is removed.
	Paused bool `json:"paused,omitempty"`
	// Notes are assumptions of the plan.
	Notes []string `json:"notes,omitempty"`
}

// Pods is the effect on the Pods of an instance.
type Pods struct {
	// Roll is true if a rolling update replaces the running Pods.
	Roll bool `json:"roll"`
	// Before and After are the desired numbers of Pods.
	Before int32 `json:"before"`
	After  int32 `json:"after"`
	// Strategy has the rolling update's maxSurge and maxUnavailable, or is "" if Roll is false.
	Strategy string `json:"strategy,omitempty"`
}

func podsOf(before, after *appsv1.Deployment) *Pods {
	pods := &Pods{After: ptr.Deref(after.Spec.Replicas, 1)}
	if before == nil {
		return pods
	}

	pods.Before = ptr.Deref(before.Spec.Replicas, 1)
	pods.Roll = pods.Before > 0 && !equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template)
	if rolling := after.Spec.Strategy.RollingUpdate; pods.Roll && rolling != nil {
		pods.Strategy = fmt.Sprintf("maxSurge %s, maxUnavailable %s", rolling.MaxSurge, rolling.MaxUnavailable)
	}
	return pods
}

func changeOf(before, after *unstructured.Unstructured) (Change, error) {
	diff, err := Compare(before, after)
	object, action := after, Update
	switch {
	case before == nil:
		action = Create
	case after == nil:
		object, action = before, Delete
	case diff == "":
		action = None
	}

	return Change{
		Action: action, APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		Diff: diff,
	}, err
}

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

// Compare returns the diff of the YAML of two states, or "". One of them can be nil.
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
