package v1alpha2

import corev1 "k8s.io/api/core/v1"

// PodSecurityContext sets user and group IDs of the Pods. Containers never run as root and have
// no privileges.
type PodSecurityContext struct {
	// runAsUser is the user ID, 1 to 2147483647. Defaults to the user of the image.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// runAsGroup is the primary group ID, 0 to 2147483647. Defaults to the group of the image.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`

	// fsGroup is the group ID that owns the files of volumes that support ownership, 0 to
	// 2147483647. Defaults to none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	FSGroup *int64 `json:"fsGroup,omitempty"`

	// fsGroupChangePolicy is Always or OnRootMismatch. Always sets the group of all files when a
	// Pod mounts the volume. OnRootMismatch skips this if the root directory of the volume
	// already has the group. Defaults to Always.
	// +optional
	// +kubebuilder:validation:Enum=Always;OnRootMismatch
	FSGroupChangePolicy corev1.PodFSGroupChangePolicy `json:"fsGroupChangePolicy,omitempty"`

	// supplementalGroups are additional group IDs, at most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=2147483647
	SupplementalGroups []int64 `json:"supplementalGroups,omitempty"`
}
