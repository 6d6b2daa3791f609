// Package v1alpha2 is the second version of the API group operator.example.com, and the version that
// the operator works with. It has the kind NginxOperator, and the conditions and reasons of its
// status. It is the hub of the conversion: internal/conversion converts every other version from and
// to it.
//
// +kubebuilder:object:generate=true
// +groupName=operator.example.com
package v1alpha2
