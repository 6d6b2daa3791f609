package v1alpha2

import corev1 "k8s.io/api/core/v1"

// PodSecurityContext says as whom the containers of the Pods run. They never run as root, and have no privileges.
type PodSecurityContext struct {
	// runAsUser is the number of the user, 1 to 2147483647. Defaults to that of the image.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// runAsGroup is the number of its first group, 0 to 2147483647. Defaults to that of the image.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`

	// fsGroup is the number of a group that owns the files of volumes that can have one, 0 to 2147483647. Defaults to none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	FSGroup *int64 `json:"fsGroup,omitempty"`

	// fsGroupChangePolicy says when the group of these files is set: Always or, where the root of the volume has it already, not again
	// (OnRootMismatch). Defaults to Always.
	// +optional
	// +kubebuilder:validation:Enum=Always;OnRootMismatch
	FSGroupChangePolicy corev1.PodFSGroupChangePolicy `json:"fsGroupChangePolicy,omitempty"`

	// supplementalGroups are numbers of further groups, at most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=2147483647
	SupplementalGroups []int64 `json:"supplementalGroups,omitempty"`
}
