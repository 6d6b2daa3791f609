package v1alpha2

import corev1 "k8s.io/api/core/v1"

// EnvVar is an environment variable of a container.
type EnvVar struct {
	// name is the name of the variable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// value is the value of the variable, at most 4096 characters. $(NAME) expands to a variable
	// defined earlier. Defaults to the empty string.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value,omitempty"`

	// valueFrom is a source for the value, read when the container starts. It replaces value.
	// +optional
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty"`
}

// EnvVarSource is a source for the value of an environment variable. Set exactly one field.
type EnvVarSource struct {
	// configMapKeyRef references a key of a ConfigMap.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`

	// secretKeyRef references a key of a Secret.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`

	// fieldRef references a field of the Pod.
	// +optional
	FieldRef *FieldReference `json:"fieldRef,omitempty"`

	// resourceFieldRef references a resource of the container.
	// +optional
	ResourceFieldRef *ResourceReference `json:"resourceFieldRef,omitempty"`
}

// KeyReference references a key of a ConfigMap or Secret in the same namespace.
type KeyReference struct {
	// name is the name of the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key is the key in the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`

	// optional allows the container to start if the object or the key does not exist. Defaults
	// to false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// FieldReference references a field of the Pod.
type FieldReference struct {
	// fieldPath is the path of the field, for example metadata.name or status.podIP.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	FieldPath string `json:"fieldPath"`
}

// ResourceReference references a resource of the container.
type ResourceReference struct {
	// resource is the name of the resource, for example limits.memory.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`
}

// Container is an init container or a sidecar. It has the security context of the nginx
// container.
type Container struct {
	// name is the name of the container, a DNS label. The name nginx is reserved.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// image is the image of the container. Defaults to the image of the nginx container.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// command replaces the entry point of the image, at most 64 elements. Defaults to the entry
	// point of the image.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=8192
	Command []string `json:"command,omitempty"`

	// args are the arguments of the command, at most 64. Defaults to the arguments of the image.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=8192
	Args []string `json:"args,omitempty"`

	// env are environment variables, at most 64.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Env []EnvVar `json:"env,omitempty"`

	// resources are the compute resources of the container. Defaults to none.
	// +optional
	Resources *ContainerResources `json:"resources,omitempty"`

	// volumeMounts mount volumes of spec.volumes in the container, at most 16.
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=16
	VolumeMounts []VolumeMount `json:"volumeMounts,omitempty"`
}

// ContainerResources are the compute resources of a container.
type ContainerResources struct {
	// limits are the maximum resources that the container can use.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`

	// requests are the resources that the container is guaranteed.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

// VolumeMount mounts a volume in a container.
type VolumeMount struct {
	// name is the name of a volume in spec.volumes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// mountPath is the mount path in the container, at most 512 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	MountPath string `json:"mountPath"`

	// subPath is the path within the volume to mount, at most 512 characters. Defaults to the
	// whole volume.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	SubPath string `json:"subPath,omitempty"`

	// readOnly mounts the volume read-only. Defaults to false.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}
