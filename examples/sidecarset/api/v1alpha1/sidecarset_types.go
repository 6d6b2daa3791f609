// Package v1alpha1 is the API group apps.kruise.io in the shape that OpenKruise gave it in 2019: the kind SidecarSet, which
// declares containers for other people's Pods.
//
// +kubebuilder:object:generate=true
// +kubebuilder:validation:Optional
// +groupName=apps.kruise.io
package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the objects in this package.
var GroupVersion = schema.GroupVersion{Group: "apps.kruise.io", Version: "v1alpha1"}

// AddToScheme adds the types of this package to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &SidecarSet{}, &SidecarSetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Condition types, each present only while it says something, and their reasons.
const (
	// ConditionNotUpdatableInPlace is True while matched Pods differ in more than the image; recreating them updates them.
	ConditionNotUpdatableInPlace = "NotUpdatableInPlace"
	ReasonOtherFieldsChanged     = "OtherFieldsChanged"
	// ConditionUpdating is present while matched Pods have another image than declared: True while they are updated one at a
	// time (UpdateInProgress) or one Pod has to become ready first (WaitingForPod), False while spec.paused (Paused), a spec that
	// was stored without its webhook (NotAdmitted) or the API server (UpdateFailed, retried with back-off) blocks it.
	ConditionUpdating      = "Updating"
	ReasonUpdateInProgress = "UpdateInProgress"
	ReasonWaitingForPod    = "WaitingForPod"
	ReasonPaused           = "Paused"
	ReasonNotAdmitted      = "NotAdmitted"
	ReasonUpdateFailed     = "UpdateFailed"
)

// SidecarSetSpec declares sidecars and the Pods that get them.
type SidecarSetSpec struct {
	// selector selects the Pods that get the sidecars when they are created, in all namespaces but the excluded ones. It must
	// not be empty: that would select every Pod of the cluster.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="an empty selector selects every Pod of the cluster; say which Pods get the sidecars, for example matchLabels: {app: nginx}"
	Selector *metav1.LabelSelector `json:"selector"`

	// containers are the sidecars, 1 to 16 of them, with the defaults that they have in a Pod. When only images change, running
	// Pods get them in place, one Pod at a time; any other change reaches a Pod when it is recreated. A change of
	// imagePullPolicy, whose default follows the image, counts as neither.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Containers []corev1.Container `json:"containers"`

	// volumes are the volumes that the sidecars mount, at most 64. One that the Pod has already, with the same name and
	// content, is shared.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Volumes []corev1.Volume `json:"volumes,omitempty"`

	// paused stops the update of running Pods; new Pods still get the sidecars. Defaults to false.
	Paused bool `json:"paused,omitempty"`
}

// SidecarSetStatus is what the operator observed of the Pods that carry the sidecars. Pods that have ended or are being
// deleted, and Pods from before the SidecarSet, are not counted.
type SidecarSetStatus struct {
	// observedGeneration is the metadata.generation of which this is the status.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// matchedPods is the number of Pods that the selector selects and that carry the sidecars.
	MatchedPods int32 `json:"matchedPods"`

	// updatedPods is the number of matched Pods whose sidecars are as declared now.
	UpdatedPods int32 `json:"updatedPods"`

	// readyPods is the number of matched Pods that are ready.
	ReadyPods int32 `json:"readyPods"`

	// conditions are NotUpdatableInPlace and Updating, each present only while it says something.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SidecarSet injects containers into Pods when they are created, and keeps their images current while they run.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=sidecarsets,singular=sidecarset,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Matched",type=integer,JSONPath=`.status.matchedPods`,description="Pods that carry the sidecars."
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedPods`,description="Pods whose sidecars are as declared now."
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyPods`,description="Pods that are ready."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="metadata.name must be at most 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit; choose another name"
type SidecarSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec declares the sidecars.
	// +required
	Spec SidecarSetSpec `json:"spec"`

	// status is what the operator observed; only the operator writes it.
	Status SidecarSetStatus `json:"status,omitempty"`
}

// SidecarSetList is a list of SidecarSets.
//
// +kubebuilder:object:root=true
type SidecarSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SidecarSet `json:"items"`
}
