// Package v1alpha1 is the first version of the API group operator.example.com: the kind NginxOperator, which declares
// one NGINX instance by its port and its number of replicas. It is served for the clients that know it; v1alpha2 can say
// more, and has the conditions and reasons that the status uses.
//
// +kubebuilder:object:generate=true
// +groupName=operator.example.com
package v1alpha1
