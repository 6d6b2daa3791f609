package operand

import (
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// order has the kinds of children in the order in which they depend on each other.
var order = append([]string{
	"ConfigMap", "Service", "NetworkPolicy", "Deployment", "PodDisruptionBudget", "HorizontalPodAutoscaler", "Ingress",
}, optionalNames()...)

func optionalNames() (out []string) {
	for _, child := range OptionalKinds {
		out = append(out, child.Kind)
	}
	return out
}

// IsEntrance reports whether a child belongs to the entrance of an instance: what clients and
// Prometheus reach the Pods through.
func IsEntrance(child client.Object) bool {
	kind := kindOf(child)
	return kind == "Service" || kind == "NetworkPolicy" || kind == "Ingress" || slices.Contains(optionalNames(), kind)
}

// WithEntrance returns the children of a declaration with the entrance of another one.
func WithEntrance(children, other []client.Object) []client.Object {
	out := slices.DeleteFunc(slices.Clone(children), IsEntrance)
	for _, child := range other {
		if IsEntrance(child) {
			out = append(out, child)
		}
	}
	slices.SortStableFunc(out, func(a, b client.Object) int {
		return slices.Index(order, kindOf(a)) - slices.Index(order, kindOf(b))
	})
	return out
}

func kindOf(child client.Object) string { return child.GetObjectKind().GroupVersionKind().Kind }

// FixedNames returns running Pods that give the ports of these specs names that depend only on their
// numbers. With them, Pod templates can be compared: the names of container ports otherwise depend on
// the Pods that run.
func FixedNames(specs ...*v1alpha2.NginxOperatorSpec) Running {
	var out Running
	for _, spec := range specs {
		for _, port := range defaults.ServicePorts(spec) {
			out.Containers = append(out.Containers, ContainerPort{
				Name: fmt.Sprintf("p-%d", port.Number), Number: port.Number, Listens: port.Listens,
			})
		}
	}
	return out
}
