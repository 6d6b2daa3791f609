package v1alpha2

const (
	// DefaultMinReplicas is the least number of operands when spec.autoscaling.minReplicas is not given.
	DefaultMinReplicas int32 = 1
	// DefaultTargetCPUUtilization is the target when spec.autoscaling names none, in percent.
	DefaultTargetCPUUtilization int32 = 80
)

// Autoscaling has the number of Pods follow the load, between two bounds.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",message="autoscaling: minReplicas is more than maxReplicas; lower it, or raise maxReplicas",fieldPath=".minReplicas",reason=FieldValueInvalid
type Autoscaling struct {
	// minReplicas is the least number of Pods, 1 to 1000. Defaults to 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the greatest number of Pods, minReplicas to 1000.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxReplicas int32 `json:"maxReplicas"`

	// targetCPUUtilizationPercentage is how much of its cpu request nginx is to use, on average over the Pods, in percent, 1 to
	// 1000. Defaults to 80 where targetMemoryUtilizationPercentage is not given either. It needs a request of cpu in resources.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	TargetCPUUtilizationPercentage *int32 `json:"targetCPUUtilizationPercentage,omitempty"`

	// targetMemoryUtilizationPercentage is how much of its memory request nginx is to use, on average over the Pods, in percent, 1
	// to 1000. It needs a request of memory in resources.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	TargetMemoryUtilizationPercentage *int32 `json:"targetMemoryUtilizationPercentage,omitempty"`

	// behavior says how fast the number may change. Defaults to that of Kubernetes: at once upwards, over five minutes downwards.
	// +optional
	Behavior *AutoscalingBehavior `json:"behavior,omitempty"`
}

// AutoscalingBehavior says how fast the number of Pods may change, in each direction.
type AutoscalingBehavior struct {
	// scaleUp is about more Pods.
	// +optional
	ScaleUp *AutoscalingRules `json:"scaleUp,omitempty"`

	// scaleDown is about fewer Pods.
	// +optional
	ScaleDown *AutoscalingRules `json:"scaleDown,omitempty"`
}

// AutoscalingRules say how fast the number of Pods may change in one direction.
type AutoscalingRules struct {
	// stabilizationWindowSeconds is for how long back the least change that was asked for counts, in seconds, 0 to 3600.
	// Defaults to that of Kubernetes: 0 for scaleUp, 300 for scaleDown.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	StabilizationWindowSeconds *int32 `json:"stabilizationWindowSeconds,omitempty"`

	// selectPolicy says which policy counts: Max, the one that allows the greatest change, Min, the least, or Disabled: no change
	// in this direction. Defaults to Max.
	// +optional
	// +kubebuilder:validation:Enum=Max;Min;Disabled
	SelectPolicy string `json:"selectPolicy,omitempty"`

	// policies bound the change in a time, 1 to 8 of them. Defaults to those of Kubernetes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Policies []AutoscalingPolicy `json:"policies,omitempty"`
}

// AutoscalingPolicy bounds the change of the number of Pods in a time.
type AutoscalingPolicy struct {
	// type is what value counts: Pods, or Percent of those that run.
	// +required
	// +kubebuilder:validation:Enum=Pods;Percent
	Type string `json:"type"`

	// value is the greatest change, 1 to 1000.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Value int32 `json:"value"`

	// periodSeconds is the time in which it holds, in seconds, 1 to 1800.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1800
	PeriodSeconds int32 `json:"periodSeconds"`
}
