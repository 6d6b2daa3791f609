package v1alpha2

import "k8s.io/apimachinery/pkg/util/intstr"

// Rollout configures rolling updates and automatic rollback.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.maxSurge) && has(self.maxUnavailable)) || !(string(self.maxSurge) in ['0', '0%'] && string(self.maxUnavailable) in ['0', '0%'])",message="maxSurge and maxUnavailable are both 0, so no Pod can be replaced; raise one of them",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.maxSurge) || has(self.maxUnavailable) || !(string(self.maxSurge) in ['0', '0%'])",message="maxSurge 0 removes a Pod before its replacement is ready; set maxUnavailable to at least 1",reason=FieldValueInvalid,fieldPath=".maxSurge"
type Rollout struct {
	// maxSurge is the number of Pods that can exist above replicas during a rollout: a number, 0
	// to 1000, or a percentage of replicas, rounded up. Defaults to 25%.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1000 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxSurge must be a number from 0 to 1000 or a percentage from 0% to 100%, for example 25%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// maxUnavailable is the number of replicas that can be unavailable during a rollout: a
	// number, 0 to 1000, or a percentage of replicas, rounded down. Defaults to 0: a Pod is
	// removed only after its replacement is ready.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1000 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxUnavailable must be a number from 0 to 1000 or a percentage from 0% to 100%, for example 25%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// progressDeadlineSeconds is the time, in seconds, after which a rollout without progress
	// fails, 10 to 3600. Defaults to 600.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=3600
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// automaticRollback rolls back a change if its rollout fails: image, configuration, content,
	// ports, and Pod settings are those of the good Pods again (status.lastGoodRevision). The
	// operator attempts the change again later, unless nginx rejects the configuration, and at once
	// if the spec or a referenced object changes. A rollout does not fail because of wrong responses
	// of nginx. If false, the operator only reports the failure. Defaults to true.
	// +optional
	AutomaticRollback *bool `json:"automaticRollback,omitempty"`
}
