// Package v1alpha1 is the API group apps.kruise.io, in the shape that OpenKruise gave it in 2019: the kind SidecarSet, which
// says what containers other people's Pods get beside their own.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1alpha1
