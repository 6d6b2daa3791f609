package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NginxOperatorStatus is what the operator observed of one NGINX instance.
type NginxOperatorStatus struct {
	// observedGeneration is the metadata.generation that this status speaks of.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of Pods that exist, of the current and of older configurations.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of Pods that serve, with the current or an older configuration; Ready tells which.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ready replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	ReadyReplicas int32 `json:"readyReplicas"`

	// updatedReplicas is the number of Pods that run the current configuration.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Updated replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`

	// selector is the label selector of the Pods in its string form, for the scale subresource.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector"
	Selector string `json:"selector,omitempty"`

	// image is the container image that the operands run.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Image"
	Image string `json:"image,omitempty"`

	// url is the address of the Service inside the cluster.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="URL",xDescriptors={"urn:alm:descriptor:org.w3:link"}
	URL string `json:"url,omitempty"`

	// blockedBy is what blocks changes, empty when nothing does. Running Pods are unchanged meanwhile.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Blocked by"
	BlockedBy []Blocker `json:"blockedBy,omitempty"`

	// relatedObjects are the objects that the operator keeps for this one, in its namespace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Related objects"
	RelatedObjects []RelatedObject `json:"relatedObjects,omitempty"`

	// conditions are Ready, Progressing and Degraded; their reasons are documented in the troubleshooting guide.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Blocker is something that blocks changes.
type Blocker struct {
	// reason is one of the reasons of the condition Degraded, or Paused.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`

	// message names the field, what is wrong with what it names, and the way out.
	// +required
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message"`
}

// RelatedObject is an object in the namespace of the NginxOperator.
type RelatedObject struct {
	// apiVersion is its API group and version, for example apps/v1.
	// +required
	APIVersion string `json:"apiVersion"`

	// kind is its kind, for example Deployment.
	// +required
	Kind string `json:"kind"`

	// name is its name.
	// +required
	Name string `json:"name"`
}
