package operand

import (
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
	// empty returns an empty object of the kind.
	empty func() client.Object
	// IsDeclared reports whether a spec declares the child.
	IsDeclared func(*v1alpha2.NginxOperatorSpec) bool
	// desired returns the child.
	desired func(*v1alpha2.NginxOperator, Inputs) client.Object
}
