package v1alpha2

const (
	// DefaultMinReplicas is the minimum number of Pods if spec.autoscaling.minReplicas is not
	// set.
	DefaultMinReplicas int32 = 1
	// DefaultTargetCPUUtilization is the target, in percent of the CPU request, if
	// spec.autoscaling sets no target.
	DefaultTargetCPUUtilization int32 = 80
)

// Autoscaling adjusts the number of Pods to the load, between minReplicas and maxReplicas.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas must not be greater than maxReplicas; lower minReplicas, or raise maxReplicas",fieldPath=".minReplicas",reason=FieldValueInvalid
type Autoscaling struct {
	// minReplicas is the minimum number of Pods, 1 to 1000. Defaults to 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the maximum number of Pods, minReplicas to 1000.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxReplicas int32 `json:"maxReplicas"`

	// targetCPUUtilizationPercentage is the target CPU utilization of nginx, in percent of its
	// CPU request, averaged over the Pods, 1 to 1000. It requires a CPU request in resources.
	// Defaults to 80 if targetMemoryUtilizationPercentage is not set.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	TargetCPUUtilizationPercentage *int32 `json:"targetCPUUtilizationPercentage,omitempty"`

	// targetMemoryUtilizationPercentage is the target memory utilization of nginx, in percent of
	// its memory request, averaged over the Pods, 1 to 1000. It requires a memory request in
	// resources. Not used by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	TargetMemoryUtilizationPercentage *int32 `json:"targetMemoryUtilizationPercentage,omitempty"`

	// behavior limits how fast the number of Pods changes. Defaults to the Kubernetes behavior:
	// scale up immediately, scale down after five minutes of lower load.
	// +optional
	Behavior *AutoscalingBehavior `json:"behavior,omitempty"`
}

// AutoscalingBehavior limits how fast the number of Pods changes in each direction.
type AutoscalingBehavior struct {
	// scaleUp limits how fast Pods are added.
	// +optional
	ScaleUp *AutoscalingRules `json:"scaleUp,omitempty"`

	// scaleDown limits how fast Pods are removed.
	// +optional
	ScaleDown *AutoscalingRules `json:"scaleDown,omitempty"`
}

// AutoscalingRules limit how fast the number of Pods changes in one direction.
type AutoscalingRules struct {
	// stabilizationWindowSeconds is the time to look back, in seconds, 0 to 3600. The autoscaler
	// applies the smallest change that it computed in this time. Defaults to the Kubernetes
	// values: 0 for scaleUp, 300 for scaleDown.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	StabilizationWindowSeconds *int32 `json:"stabilizationWindowSeconds,omitempty"`

	// selectPolicy selects among policies: Max uses the policy that allows the largest change,
	// Min uses the policy that allows the smallest change, and Disabled allows no change in this
	// direction. Defaults to Max.
	// +optional
	// +kubebuilder:validation:Enum=Max;Min;Disabled
	SelectPolicy string `json:"selectPolicy,omitempty"`

	// policies limit the change per period, 1 to 8. Defaults to the Kubernetes policies.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Policies []AutoscalingPolicy `json:"policies,omitempty"`
}

// AutoscalingPolicy limits the change of the number of Pods per period.
type AutoscalingPolicy struct {
	// type is the unit of value: Pods is a number of Pods, and Percent is a percentage of the
	// current number.
	// +required
	// +kubebuilder:validation:Enum=Pods;Percent
	Type string `json:"type"`

	// value is the maximum change per period, 1 to 1000.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Value int32 `json:"value"`

	// periodSeconds is the length of the period, in seconds, 1 to 1800.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1800
	PeriodSeconds int32 `json:"periodSeconds"`
}
