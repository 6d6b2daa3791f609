// Package v1 is the API group tutorial.my.domain: the kind Foo.
//
// +kubebuilder:object:generate=true
// +kubebuilder:validation:Optional
// +groupName=tutorial.my.domain
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the objects in this package.
var GroupVersion = schema.GroupVersion{Group: "tutorial.my.domain", Version: "v1"}

// AddToScheme adds the types of this package to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Foo{}, &FooList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// FooSpec declares whom a Foo looks for.
type FooSpec struct {
	// name is the name of the friend that the Foo is looking for: a Pod of this name, in any namespace. At most 253
	// characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be lower-case letters, digits, hyphens and dots, and begin and end with a letter or digit, as names of Pods do, for example jack"
	Name string `json:"name"`
}

// FooStatus is what the operator found.
type FooStatus struct {
	// happy is true while the friend exists: at least one Pod of the name, in whatever state. A Pod that is being deleted
	// counts until it is gone.
	Happy bool `json:"happy"`

	// observedGeneration is the metadata.generation of which happy is the answer.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// Foo is happy while its friend exists.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=foos,singular=foo,scope=Namespaced
// +kubebuilder:printcolumn:name="Friend",type=string,JSONPath=`.spec.name`,description="Name of the Pod that the Foo is looking for"
// +kubebuilder:printcolumn:name="Happy",type=boolean,JSONPath=`.status.happy`,description="Whether there is one"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec declares whom the Foo looks for.
	// +required
	Spec FooSpec `json:"spec"`

	// status is what the operator found; only the operator writes it.
	Status FooStatus `json:"status,omitzero"`
}

// FooList is a list of Foos.
//
// +kubebuilder:object:root=true
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Foo `json:"items"`
}
