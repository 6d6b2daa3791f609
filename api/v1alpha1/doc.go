// Package v1alpha1 is the first version of the API group operator.example.com: the kind NginxOperator, which declares
// one NGINX server, and the conditions and reasons that its status uses.
//
// +kubebuilder:object:generate=true
// +groupName=operator.example.com
package v1alpha1
