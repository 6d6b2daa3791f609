// Package v1 is the API group ego.example.com: the kind Activity.
//
// +kubebuilder:object:generate=true
// +groupName=ego.example.com
package v1
