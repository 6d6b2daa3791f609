// Package v1alpha1 is the first version of the API group operator.example.com. Its kind NginxOperator
// is an NGINX instance with a port and a number of replicas. The version is deprecated, and served
// for existing clients. v1alpha2 has more fields, and the conditions and reasons of the status.
//
// +kubebuilder:object:generate=true
// +groupName=operator.example.com
package v1alpha1
