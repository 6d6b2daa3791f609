package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Volume is a volume of the Pods and its mount in the nginx container. Its fields correspond to
// the volumes and volumeMounts of a Pod.
//
// +kubebuilder:validation:XValidation:rule="[has(self.configMap), has(self.secret), has(self.emptyDir), has(self.persistentVolumeClaim), has(self.csi), has(self.downwardAPI), has(self.projected)].filter(given, given).size() <= 1",message="an entry of volumes has more than one source, for example configMap and secret; keep one source, and remove the others"
type Volume struct {
	// name is the name of the volume, a DNS label. The names config, tmp, content, files, and
	// cache and the prefixes tls- and operator- are reserved.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// mountPath is the mount path in the nginx container, at most 512 characters. Defaults to no
	// mount: only init containers and sidecars can mount the volume.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	MountPath string `json:"mountPath,omitempty"`

	// subPath is the path within the volume to mount, at most 512 characters. Defaults to the
	// whole volume.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	SubPath string `json:"subPath,omitempty"`

	// readOnly mounts the volume read-only. Defaults to false.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// configMap mounts the keys of a ConfigMap as files.
	// +optional
	ConfigMap *ConfigMapVolume `json:"configMap,omitempty"`

	// secret mounts the keys of a Secret as files.
	// +optional
	Secret *SecretVolume `json:"secret,omitempty"`

	// emptyDir is an empty directory with the lifetime of the Pod.
	// +optional
	EmptyDir *EmptyDirVolume `json:"emptyDir,omitempty"`

	// persistentVolumeClaim mounts a PersistentVolumeClaim, whose data outlives the Pods.
	// +optional
	PersistentVolumeClaim *ClaimVolume `json:"persistentVolumeClaim,omitempty"`

	// csi is an ephemeral volume from a CSI driver.
	// +optional
	CSI *CSIVolume `json:"csi,omitempty"`

	// downwardAPI mounts fields of the Pod as files.
	// +optional
	DownwardAPI *DownwardAPIVolume `json:"downwardAPI,omitempty"`

	// projected combines several sources in one directory.
	// +optional
	Projected *ProjectedVolume `json:"projected,omitempty"`
}

// ConfigMapVolume mounts the keys of a ConfigMap as files.
type ConfigMapVolume struct {
	// name is the name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// items are the keys to mount as files, at most 64, each with its own path. Defaults to all
	// keys.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Items []KeyToPath `json:"items,omitempty"`

	// defaultMode is the file mode, 0 to 511. Defaults to 420, which is 0644 in octal.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	DefaultMode *int32 `json:"defaultMode,omitempty"`

	// optional allows Pods to start if the ConfigMap or a key does not exist. Defaults to false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// SecretVolume mounts the keys of a Secret as files.
type SecretVolume struct {
	// secretName is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// items are the keys to mount as files, at most 64, each with its own path. Defaults to all
	// keys.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Items []KeyToPath `json:"items,omitempty"`

	// defaultMode is the file mode, 0 to 511. Defaults to 420, which is 0644 in octal.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	DefaultMode *int32 `json:"defaultMode,omitempty"`

	// optional allows Pods to start if the Secret or a key does not exist. Defaults to false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// KeyToPath maps a key to a file.
type KeyToPath struct {
	// key is the key in the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`

	// path is the file path within the volume, at most 512 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`
}

// EmptyDirVolume is an empty directory with the lifetime of the Pod.
type EmptyDirVolume struct {
	// medium is the storage medium. Memory stores the volume in memory, which counts toward the
	// memory limits of the containers. Defaults to the node's disk.
	// +optional
	// +kubebuilder:validation:Enum=Memory
	Medium corev1.StorageMedium `json:"medium,omitempty"`

	// sizeLimit is the maximum size of the volume. A Pod that writes more is evicted. With medium
	// Memory, the write fails instead. Defaults to no limit.
	// +optional
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`
}

// ClaimVolume mounts a PersistentVolumeClaim.
type ClaimVolume struct {
	// claimName is the name of the PersistentVolumeClaim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName"`
}

// CSIVolume is an ephemeral volume from a CSI driver.
type CSIVolume struct {
	// driver is the name of the CSI driver.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Driver string `json:"driver"`

	// readOnly mounts the volume read-only. Defaults to false.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// volumeAttributes are parameters for the driver, at most 32.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	VolumeAttributes map[string]Attribute `json:"volumeAttributes,omitempty"`

	// nodePublishSecretRef references a Secret with credentials for the driver.
	// +optional
	NodePublishSecretRef *SecretReference `json:"nodePublishSecretRef,omitempty"`
}

// Attribute is a parameter for a CSI driver, at most 4096 characters.
//
// +kubebuilder:validation:MaxLength=4096
type Attribute string

// SecretReference references a Secret in the same namespace.
type SecretReference struct {
	// name is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// DownwardAPIVolume mounts fields of the Pod as files.
type DownwardAPIVolume struct {
	// items are the files, at most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Items []DownwardAPIFile `json:"items,omitempty"`
}

// DownwardAPIFile is a file with the value of a field of the Pod.
type DownwardAPIFile struct {
	// path is the file path within the volume, at most 512 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`

	// fieldRef is the field of the Pod.
	// +required
	FieldRef FieldReference `json:"fieldRef"`
}

// ProjectedVolume combines several sources in one directory.
type ProjectedVolume struct {
	// sources are the sources of the volume, 1 to 16.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Sources []ProjectedSource `json:"sources"`

	// defaultMode is the file mode, 0 to 511. Defaults to 420, which is 0644 in octal.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

// ProjectedSource is one source of a projected volume. Set exactly one field.
type ProjectedSource struct {
	// configMap adds the keys of a ConfigMap as files.
	// +optional
	ConfigMap *ProjectedObject `json:"configMap,omitempty"`

	// secret adds the keys of a Secret as files.
	// +optional
	Secret *ProjectedObject `json:"secret,omitempty"`

	// downwardAPI adds fields of the Pod as files.
	// +optional
	DownwardAPI *DownwardAPIVolume `json:"downwardAPI,omitempty"`

	// serviceAccountToken adds a token of the Pod's ServiceAccount.
	// +optional
	ServiceAccountToken *TokenFile `json:"serviceAccountToken,omitempty"`
}

// ProjectedObject adds the keys of a ConfigMap or Secret as files.
type ProjectedObject struct {
	// name is the name of the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// items are the keys to mount as files, at most 64, each with its own path. Defaults to all
	// keys.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Items []KeyToPath `json:"items,omitempty"`

	// optional allows Pods to start if the object or a key does not exist. Defaults to false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// TokenFile is a token of the Pod's ServiceAccount, mounted as a file.
type TokenFile struct {
	// path is the file path within the volume, at most 512 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`

	// audience is the intended audience of the token. Defaults to the API server.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Audience string `json:"audience,omitempty"`

	// expirationSeconds is the lifetime of the token, in seconds, 600 to 86400. The kubelet
	// renews the token before it expires. Defaults to 3600.
	// +optional
	// +kubebuilder:validation:Minimum=600
	// +kubebuilder:validation:Maximum=86400
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
}
