package v1alpha2

import corev1 "k8s.io/api/core/v1"

// EnvVar is an environment variable of a container.
type EnvVar struct {
	// name of the variable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// value of the variable, at most 4096 characters. $(NAME) stands for a variable before it. Defaults to the empty text.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value,omitempty"`

	// valueFrom says where the value is read when the container starts, in place of value.
	// +optional
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty"`
}

// EnvVarSource is where a value is read, exactly one of its fields.
type EnvVarSource struct {
	// configMapKeyRef is a key of a ConfigMap.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`

	// secretKeyRef is a key of a Secret.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`

	// fieldRef is a field of the Pod.
	// +optional
	FieldRef *FieldReference `json:"fieldRef,omitempty"`

	// resourceFieldRef is a resource of the container.
	// +optional
	ResourceFieldRef *ResourceReference `json:"resourceFieldRef,omitempty"`
}

// KeyReference names one key of a ConfigMap or Secret in the namespace of the object.
type KeyReference struct {
	// name of the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key in it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`

	// optional lets the container start without it. Defaults to false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// FieldReference names a field of the Pod.
type FieldReference struct {
	// fieldPath is the field, for example metadata.name or status.podIP.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	FieldPath string `json:"fieldPath"`
}

// ResourceReference names a resource of the container.
type ResourceReference struct {
	// resource is the resource, for example limits.memory.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`
}

// Container is a container beside nginx. It has the security context of the nginx container.
type Container struct {
	// name of the container, a DNS label. nginx is taken.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// image of the container. Defaults to the image of the nginx container.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// command replaces the entry point of the image, at most 64 words. Defaults to that of the image.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=8192
	Command []string `json:"command,omitempty"`

	// args are the arguments of the command, at most 64. Defaults to those of the image.
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

	// resources are the compute resources. Defaults to none.
	// +optional
	Resources *ContainerResources `json:"resources,omitempty"`

	// volumeMounts are volumes of spec.volumes, at most 16, and where the container has them.
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=16
	VolumeMounts []VolumeMount `json:"volumeMounts,omitempty"`
}

// ContainerResources are the compute resources of a container.
type ContainerResources struct {
	// limits are what it may use at most.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`

	// requests are what it has in any case.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

// VolumeMount is a volume and where a container has it.
type VolumeMount struct {
	// name of the volume in spec.volumes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// mountPath is the directory.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	MountPath string `json:"mountPath"`

	// subPath is what of the volume is mounted there. Defaults to all of it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	SubPath string `json:"subPath,omitempty"`

	// readOnly mounts it for reading only. Defaults to false.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}
