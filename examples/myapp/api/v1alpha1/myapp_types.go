// Package v1alpha1 is the API group example.com: the kind MyApp.
//
// +kubebuilder:object:generate=true
// +kubebuilder:validation:Optional
// +groupName=example.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the objects in this package.
var GroupVersion = schema.GroupVersion{Group: "example.com", Version: "v1alpha1"}

// AddToScheme adds the types of this package to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &MyApp{}, &MyAppList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// DefaultReplicas is the number of Pods when spec.replicas is not given.
const DefaultReplicas int32 = 1

// ConditionReady is True when as many Pods as are declared run the declared image and are ready.
const ConditionReady = "Ready"

// Reasons of the condition Ready.
const (
	// ReasonAllReplicasReady (True): every declared Pod is ready.
	ReasonAllReplicasReady = "AllReplicasReady"
	// ReasonRolloutInProgress (False): the Deployment is rolling out.
	ReasonRolloutInProgress = "RolloutInProgress"
	// ReasonNameConflict (False): a Deployment of this name exists and is not controlled by this MyApp. It stays unchanged.
	ReasonNameConflict = "NameConflict"
	// ReasonAPIError (False): the Deployment could not be written; retried with back-off.
	ReasonAPIError = "APIError"
)

// MyAppSpec declares one application.
type MyAppSpec struct {
	// replicas is the number of Pods, 0 to 1000. Defaults to 1. It is also what the scale subresource sets (kubectl scale).
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`

	// image is the container image of the Pods, 1 to 512 characters without white space.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:space:]]')",message="image must not contain white space, for example myapp:latest"
	Image string `json:"image"`
}

// MyAppStatus is what the operator observed of one application.
type MyAppStatus struct {
	// observedGeneration is the metadata.generation of which this is the status.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of Pods that exist.
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of Pods that are ready.
	ReadyReplicas int32 `json:"readyReplicas"`

	// selector is the label selector of the Pods in its string form, for the scale subresource.
	Selector string `json:"selector,omitempty"`

	// conditions has Ready.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MyApp is an application that runs as a Deployment of the same name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=myapps,singular=myapp
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must have at most 63 characters, because the Pods carry it as a label; choose a shorter name"
type MyApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec declares the application.
	// +required
	Spec MyAppSpec `json:"spec"`

	// status is what the operator observed; only the operator writes it.
	Status MyAppStatus `json:"status,omitempty"`
}

// MyAppList is a list of MyApps.
//
// +kubebuilder:object:root=true
type MyAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MyApp `json:"items"`
}
