// Package v1alpha2 is the second version of the API group operator.example.com and the one that the operator works
// with: the kind NginxOperator, and the conditions and reasons that its status uses. It is the hub of the conversion:
// every other version is converted from and to it (internal/conversion).
//
// +kubebuilder:object:generate=true
// +groupName=operator.example.com
package v1alpha2
