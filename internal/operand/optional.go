package operand

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// OptionalKind is a kind of child that is not installed in every cluster.
type OptionalKind struct {
	// Kind is the name of the kind.
	Kind string
	// At is the field that declares the child.
	At *field.Path
	// Remedy describes what to do if the kind is not installed.
	Remedy string
	// IsDeclared reports whether a spec declares the child.
	IsDeclared func(*v1alpha2.NginxOperatorSpec) bool
	// desired returns the child.
	desired func(*v1alpha2.NginxOperator, Inputs) client.Object
}

// OptionalKinds has all optional kinds, in the order in which their children are created.
var OptionalKinds = []OptionalKind{HTTPRouteKind, podMonitorKind, prometheusRuleKind}

func optionalNames() (names []string) {
	for _, optional := range OptionalKinds {
		names = append(names, optional.Kind)
	}
	return names
}

// WithoutMissing returns children without those whose kind is not installed.
func WithoutMissing(children []client.Object, missing map[string]string) []client.Object {
	return slices.DeleteFunc(slices.Clone(children), func(child client.Object) bool { return missing[kindOf(child)] != "" })
}
