package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SidecarSetSpec declares sidecars and the Pods that get them.
type SidecarSetSpec struct {
	// selector selects by their labels the Pods that get the sidecars when they are created, in all namespaces but those
	// that are excluded. It must not be empty: that would select every Pod of the cluster.
	// +required
	Selector *metav1.LabelSelector `json:"selector"`

	// containers are the sidecars, 1 to 16 of them. What Kubernetes has a default for in a Pod is filled in. When only
	// images change, running Pods get them in place, one Pod at a time; any other change reaches a Pod when it is created
	// anew. imagePullPolicy counts as part of neither: it says how an image is fetched, and its default follows the image.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Containers []corev1.Container `json:"containers"`

	// volumes are the volumes that the sidecars mount, at most 64. A Pod that has one of the same name and content already
	// shares it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Volumes []corev1.Volume `json:"volumes,omitempty"`

	// paused stops the update of running Pods. New Pods get the sidecars nevertheless. Defaults to false.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// SidecarSetStatus is what the operator observed of the Pods with these sidecars. Pods that end or have ended, and those
// that were created before the SidecarSet, are not counted.
type SidecarSetStatus struct {
	// observedGeneration is the metadata.generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// matchedPods is the number of Pods that the selector selects and that carry the sidecars.
	// +optional
	MatchedPods int32 `json:"matchedPods"`

	// updatedPods is the number of matched Pods whose sidecars are declared as they are now.
	// +optional
	UpdatedPods int32 `json:"updatedPods"`

	// readyPods is the number of matched Pods that run and are ready.
	// +optional
	ReadyPods int32 `json:"readyPods"`

	// conditions are Invalid, NotUpdatableInPlace and Updating, each only while it has something to tell.
	// +optional
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
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec declares the sidecars.
	// +required
	Spec SidecarSetSpec `json:"spec"`

	// status is what the operator observed; only the operator writes it.
	// +optional
	Status SidecarSetStatus `json:"status,omitempty"`
}

// SidecarSetList is a list of SidecarSets.
//
// +kubebuilder:object:root=true
type SidecarSetList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects of this list.
	Items []SidecarSet `json:"items"`
}
