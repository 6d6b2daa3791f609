package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// Defaults that the schema of the CustomResourceDefinition sets. A stored object always has
// them.
const (
	// DefaultPort is the number of the only port if no port is set.
	DefaultPort int32 = 8080
	// DefaultReplicas is the number of Pods if spec.replicas is not set.
	DefaultReplicas int32 = 1
)

// NginxOperatorSpec is the desired state of one NGINX instance.
type NginxOperatorSpec struct {
	// port is the TCP port of the Service, and the port that nginx listens on, 1 to 65535.
	// Defaults to 8080. After a change, the new port answers as soon as a Pod listens on it, and
	// the old port until the last Pod that listens on it is gone.
	// +optional
	// +default=8080
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Port",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	Port *int32 `json:"port,omitempty"`

	// replicas is the number of NGINX Pods, 0 to 1000. Defaults to 1. 0 stops all Pods. kubectl
	// scale and HorizontalPodAutoscalers set this field through the scale subresource.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas *int32 `json:"replicas,omitempty"`

	// forceRedeploy starts a rolling update of all Pods whenever its value changes. The value
	// has no other meaning. Use a timestamp, for example. At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Force redeploy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	ForceRedeploy string `json:"forceRedeploy,omitempty"`
}

// NginxOperator is an NGINX instance, and not the operator. The operator creates a Deployment, a
// Service, a ConfigMap, and a NetworkPolicy for it, and a PodDisruptionBudget for two or more
// replicas. It restores these objects if they change, and reports their state in the status.
//
// The Service has the name of the NginxOperator. The name must therefore be a DNS label (RFC
// 1035): at most 63 lower-case letters, digits, and hyphens, starting with a letter and ending
// with a letter or digit.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:deprecatedversion:warning="operator.example.com/v1alpha1 NginxOperator is deprecated; use operator.example.com/v1alpha2, where spec.port is spec.ports (name: http). The same objects can be read and written at both."
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=nginxoperators,singular=nginxoperator,shortName=ngx,categories=all,scope=Namespaced
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="metadata.name must be a DNS label, because the Service has the same name: at most 63 lower-case letters, digits, and hyphens, starting with a letter and ending with a letter or digit; choose another name"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether all replicas serve the current spec"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`,description="Number of Pods"
// +kubebuilder:printcolumn:name="Ready-Replicas",type=integer,JSONPath=`.status.readyReplicas`,description="Number of ready Pods"
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.status.image`,description="Container image of nginx in the current Pod template"
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`,description="URL of the instance"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1,description="Reason of the Ready condition"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="Message of the Ready condition"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +operator-sdk:csv:customresourcedefinitions:displayName="NGINX instance (v1alpha1, deprecated)",resources={{Deployment,v1,""},{ReplicaSet,v1,""},{Pod,v1,""},{Service,v1,""},{ConfigMap,v1,""},{PodDisruptionBudget,v1,""},{NetworkPolicy,v1,""},{Ingress,v1,""},{ControllerRevision,v1,""}}
type NginxOperator struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the instance. All fields are optional.
	// +optional
	// +default={}
	Spec NginxOperatorSpec `json:"spec,omitempty"`

	// status is the observed state of the instance. Only the operator writes it.
	// +optional
	Status v1alpha2.NginxOperatorStatus `json:"status,omitempty"`
}

// NginxOperatorList is a list of NginxOperators.
//
// +kubebuilder:object:root=true
type NginxOperatorList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the NginxOperators in the list.
	Items []NginxOperator `json:"items"`
}
