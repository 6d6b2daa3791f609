package operand

import (
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
