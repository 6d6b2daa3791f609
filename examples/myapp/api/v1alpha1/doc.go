// Package v1alpha1 is the API group example.com: the kind MyApp, an application that runs as a Deployment.
//
// +kubebuilder:object:generate=true
// +groupName=example.com
package v1alpha1
