package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Volume is a volume of the Pods and where nginx has it. A Pod has the fields of the same names in its volumes and volumeMounts.
//
// +kubebuilder:validation:XValidation:rule="[has(self.configMap), has(self.secret), has(self.emptyDir), has(self.persistentVolumeClaim), has(self.csi), has(self.downwardAPI), has(self.projected)].filter(given, given).size() == 1",message="a volume takes exactly one of configMap, secret, emptyDir, persistentVolumeClaim, csi, downwardAPI and projected"
type Volume struct {
	// name of the volume, a DNS label. The names config, tmp and content and those that begin with tls- or operator- are the
	// operator's.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// mountPath is the directory in which nginx has it, at most 512 characters. Defaults to none: only containers that name it mount
	// it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	MountPath string `json:"mountPath,omitempty"`

	// subPath is what of the volume is mounted there. Defaults to all of it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	SubPath string `json:"subPath,omitempty"`

	// readOnly mounts it for reading only. Defaults to false.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// configMap has the keys of a ConfigMap as files.
	// +optional
	ConfigMap *ConfigMapVolume `json:"configMap,omitempty"`

	// secret has the keys of a Secret as files.
	// +optional
	Secret *SecretVolume `json:"secret,omitempty"`

	// emptyDir is an empty directory that lives as long as the Pod.
	// +optional
	EmptyDir *EmptyDirVolume `json:"emptyDir,omitempty"`

	// persistentVolumeClaim is a volume that outlives the Pods.
	// +optional
	PersistentVolumeClaim *ClaimVolume `json:"persistentVolumeClaim,omitempty"`

	// csi is a volume that a CSI driver makes for the Pod.
	// +optional
	CSI *CSIVolume `json:"csi,omitempty"`

	// downwardAPI has fields of the Pod as files.
	// +optional
	DownwardAPI *DownwardAPIVolume `json:"downwardAPI,omitempty"`

	// projected puts several sources into one directory.
	// +optional
	Projected *ProjectedVolume `json:"projected,omitempty"`
}

// ConfigMapVolume has the keys of a ConfigMap as files.
type ConfigMapVolume struct {
	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// items are the keys that become files, at most 64, each with a path of its own. Defaults to all keys.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Items []KeyToPath `json:"items,omitempty"`

	// defaultMode is the mode of the files, 0 to 511. Defaults to 420, which is 0644 in octal.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	DefaultMode *int32 `json:"defaultMode,omitempty"`

	// optional lets the Pods start without it. Defaults to false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// SecretVolume has the keys of a Secret as files.
type SecretVolume struct {
	// secretName names the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// items are the keys that become files, at most 64, each with a path of its own. Defaults to all keys.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Items []KeyToPath `json:"items,omitempty"`

	// defaultMode is the mode of the files, 0 to 511. Defaults to 420, which is 0644 in octal.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	DefaultMode *int32 `json:"defaultMode,omitempty"`

	// optional lets the Pods start without it. Defaults to false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// KeyToPath is a key and the file that it becomes.
type KeyToPath struct {
	// key of the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`

	// path is the file in the volume.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`
}

// EmptyDirVolume is an empty directory that lives as long as the Pod.
type EmptyDirVolume struct {
	// medium Memory keeps it in memory, which counts as that of the containers. Defaults to the disk of the node.
	// +optional
	// +kubebuilder:validation:Enum=Memory
	Medium corev1.StorageMedium `json:"medium,omitempty"`

	// sizeLimit is how much it may hold; a Pod with more is evicted.
	// +optional
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`
}

// ClaimVolume is a volume that outlives the Pods.
type ClaimVolume struct {
	// claimName names the PersistentVolumeClaim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName"`
}

// CSIVolume is a volume that a CSI driver makes for the Pod.
type CSIVolume struct {
	// driver is the name of the CSI driver.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Driver string `json:"driver"`

	// readOnly mounts it for reading only. Defaults to false.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// volumeAttributes are what the driver wants to know, at most 32.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	VolumeAttributes map[string]Attribute `json:"volumeAttributes,omitempty"`

	// nodePublishSecretRef names a Secret that the driver gets.
	// +optional
	NodePublishSecretRef *SecretReference `json:"nodePublishSecretRef,omitempty"`
}

// Attribute is a value for a CSI driver.
//
// +kubebuilder:validation:MaxLength=4096
type Attribute string

// SecretReference names a Secret in the namespace of the object.
type SecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// DownwardAPIVolume has fields of the Pod as files.
type DownwardAPIVolume struct {
	// items are the files, at most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Items []DownwardAPIFile `json:"items,omitempty"`
}

// DownwardAPIFile is a file with a field of the Pod.
type DownwardAPIFile struct {
	// path is the file in the volume.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`

	// fieldRef is the field.
	// +required
	FieldRef FieldReference `json:"fieldRef"`
}

// ProjectedVolume puts several sources into one directory.
type ProjectedVolume struct {
	// sources are what is in it, 1 to 16.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Sources []ProjectedSource `json:"sources"`

	// defaultMode is the mode of the files, 0 to 511. Defaults to 420, which is 0644 in octal.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

// ProjectedSource is one source of a projected volume.
type ProjectedSource struct {
	// configMap has the keys of a ConfigMap as files.
	// +optional
	ConfigMap *ProjectedObject `json:"configMap,omitempty"`

	// secret has the keys of a Secret as files.
	// +optional
	Secret *ProjectedObject `json:"secret,omitempty"`

	// downwardAPI has fields of the Pod as files.
	// +optional
	DownwardAPI *DownwardAPIVolume `json:"downwardAPI,omitempty"`

	// serviceAccountToken is a token of the Pods' ServiceAccount.
	// +optional
	ServiceAccountToken *TokenFile `json:"serviceAccountToken,omitempty"`
}

// ProjectedObject is a ConfigMap or Secret whose keys become files.
type ProjectedObject struct {
	// name of the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// items are the keys that become files, at most 64, each with a path of its own. Defaults to all keys.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Items []KeyToPath `json:"items,omitempty"`

	// optional lets the Pods start without it. Defaults to false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// TokenFile is a token of the Pods' ServiceAccount.
type TokenFile struct {
	// path is the file in the volume.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`

	// audience is for whom the token is. Defaults to the API server.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Audience string `json:"audience,omitempty"`

	// expirationSeconds is how long the token holds; the kubelet renews it in time, 600 to 86400. Defaults to an hour.
	// +optional
	// +kubebuilder:validation:Minimum=600
	// +kubebuilder:validation:Maximum=86400
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
}
