// Package v1 is the API group tutorial.my.domain: the kind Foo.
//
// +kubebuilder:object:generate=true
// +groupName=tutorial.my.domain
package v1
