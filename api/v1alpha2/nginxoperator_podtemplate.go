package v1alpha2

import corev1 "k8s.io/api/core/v1"

// PodTemplate sets labels, annotations, and scheduling of the Pods. Each field has the meaning
// of the same field in a Pod.
type PodTemplate struct {
	// labels of the Pods, at most 64, in addition to the operator's labels
	// (app.kubernetes.io/...), which cannot be changed.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('operator.example.com/') && !(k in ['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/version', 'app.kubernetes.io/component', 'app.kubernetes.io/part-of', 'app.kubernetes.io/managed-by']))",message="the labels app.kubernetes.io/name, instance, version, component, part-of, and managed-by, and the prefix operator.example.com/ are reserved for the operator; remove these labels, or use your own prefix"
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the Pods, at most 64. The prefix operator.example.com/ is reserved.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('operator.example.com/'))",message="annotations with the prefix operator.example.com/ are reserved for the operator; remove them, or use your own prefix"
	Annotations map[string]string `json:"annotations,omitempty"`

	// nodeSelector lists labels that a node must have to run the Pods, at most 64.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the Pods, at most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.effect) || size(t.effect) == 0 || t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="effect in tolerations must be NoSchedule, PreferNoSchedule, or NoExecute; remove effect to tolerate all effects"
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity of the Pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// topologySpreadConstraints of the Pods, at most 16. A constraint without a labelSelector
	// applies to the Pods of this instance.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.maxSkew >= 1)",message="maxSkew in topologySpreadConstraints must be at least 1; raise it"
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.whenUnsatisfiable in ['DoNotSchedule', 'ScheduleAnyway'])",message="whenUnsatisfiable in topologySpreadConstraints must be DoNotSchedule or ScheduleAnyway; write one of them"
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName is the PriorityClass of the Pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="priorityClassName must consist of lower-case letters, digits, hyphens, and dots, and each part between dots must start and end with a letter or digit; write for example high-priority"
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// imagePullSecrets reference Secrets in the same namespace for pulling the images, at most
	// 16.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}
