package operand

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// OptionalKinds has all optional kinds, in the order in which their children are created.
var OptionalKinds = []OptionalKind{HTTPRouteKind, podMonitorKind, prometheusRuleKind}

// desiredOptional returns the declared children of the optional kinds that are installed.
func desiredOptional(object *v1alpha2.NginxOperator, in Inputs) []client.Object {
	var out []client.Object
	for _, child := range OptionalKinds {
		if child.IsDeclared(&object.Spec) && in.Missing[child.Kind] == "" {
			out = append(out, child.desired(object, in))
		}
	}
	return out
}

// Unrendered returns the optional kinds that a spec declares and that are not installed. The
// Ingress that such an HTTPRoute replaces is not stale.
func Unrendered(spec *v1alpha2.NginxOperatorSpec, in Inputs) []OptionalKind {
	return slices.DeleteFunc(slices.Clone(OptionalKinds), func(child OptionalKind) bool {
		return in.Missing[child.Kind] == "" || !child.IsDeclared(spec)
	})
}

// WithoutMissing returns children without those whose kind is not installed.
func WithoutMissing(children []client.Object, missing map[string]string) []client.Object {
	return slices.DeleteFunc(slices.Clone(children), func(child client.Object) bool { return missing[kindOf(child)] != "" })
}

// MissingKinds returns the optional kinds of children that are not installed.
func MissingKinds(children []client.Object, missing map[string]string) []OptionalKind {
	return slices.DeleteFunc(slices.Clone(OptionalKinds), func(child OptionalKind) bool {
		return missing[child.Kind] == "" || !slices.ContainsFunc(children, func(one client.Object) bool { return kindOf(one) == child.Kind })
	})
}
