package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of the API. The schema of the CustomResourceDefinition sets them, so a stored object always has them.
const (
	// DefaultPort is the TCP port on which nginx listens when spec.port is not given.
	DefaultPort int32 = 8080
	// DefaultReplicas is the number of operands when spec.replicas is not given.
	DefaultReplicas int32 = 1
)

// NginxOperatorSpec declares one NGINX instance.
type NginxOperatorSpec struct {
	// port is the TCP port on which nginx listens and the Service serves, 1 to 65535. Defaults to 8080.
	// A change moves the instance: the Service changes over at once and follows each Pod to the port that it listens on.
	// +optional
	// +default=8080
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Port",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	Port *int32 `json:"port,omitempty"`

	// replicas is the number of NGINX Pods, 0 to 1000. Defaults to 1. With 0 nothing serves.
	// It is also what the scale subresource sets (kubectl scale, HorizontalPodAutoscaler).
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas *int32 `json:"replicas,omitempty"`

	// forceRedeploy replaces all Pods, one after the other, whenever it changes, and changes nothing else.
	// The value has no meaning; a date does well. At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Force redeploy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	ForceRedeploy string `json:"forceRedeploy,omitempty"`
}

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

	// url is where clients find the instance: the first host of expose (a field of v1alpha2) once the Ingress has an address, else the
	// load balancer's address where there is one, else that of the Service inside the cluster.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="URL",xDescriptors={"urn:alm:descriptor:org.w3:link"}
	URL string `json:"url,omitempty"`

	// addresses are where the instance is reached from outside of the cluster, none for a Service of type ClusterIP without an Ingress.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Addresses"
	Addresses []Address `json:"addresses,omitempty"`

	// blockedBy is every reason why what runs is not what the object declares, each with the way out; empty when it is. First what
	// blocks changes, then the child that cannot be written, then why Pods do not serve, then Paused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Blocked by"
	BlockedBy []Blocker `json:"blockedBy,omitempty"`

	// lastGoodRevision is the declaration that served with all replicas last. A change whose rollout fails is taken back to it.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last good revision"
	LastGoodRevision *GoodRevision `json:"lastGoodRevision,omitempty"`

	// failedRevisions are declarations that were taken back, and are not tried again while they stand here.
	// +optional
	// +listType=map
	// +listMapKey=revision
	// +kubebuilder:validation:MaxItems=4
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Failed revisions"
	FailedRevisions []FailedRevision `json:"failedRevisions,omitempty"`

	// certificates are those that spec.tls names and that can be used.
	// +optional
	// +listType=map
	// +listMapKey=secretName
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Certificates"
	Certificates []Certificate `json:"certificates,omitempty"`

	// patchedKinds are the kinds of the children that spec.patches changes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	PatchedKinds []string `json:"patchedKinds,omitempty"`

	// relatedObjects are the objects that the operator keeps for this one, in its namespace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Related objects"
	RelatedObjects []RelatedObject `json:"relatedObjects,omitempty"`

	// conditions are Ready, Progressing, Degraded and, with certificates, CertificatesValid; their reasons are documented in the
	// troubleshooting guide.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Blocker is a reason why what runs is not what the object declares.
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

// GoodRevision is a declaration that served with all replicas.
type GoodRevision struct {
	// revision is the name of the ControllerRevision that keeps the declaration.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`

	// image is its container image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// configHash stands for its nginx configuration; the name of the ConfigMap ends with it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfigHash string `json:"configHash,omitempty"`

	// time is when all its replicas served for the first time.
	// +required
	Time metav1.Time `json:"time"`
}

// FailedRevision is a declaration whose rollout failed and was taken back.
type FailedRevision struct {
	// revision is the name that its ControllerRevision had.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`

	// reason is why, one of the reasons of the condition Degraded.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`

	// message says what was tried and why it failed, with nginx's or the kubelet's own words.
	// +required
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message"`

	// time is when the failure was seen.
	// +required
	Time metav1.Time `json:"time"`
}

// Certificate is a certificate that is in use, with what every client is told of it.
type Certificate struct {
	// secretName is the Secret that holds it.
	// +required
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// notAfter is when it expires.
	// +required
	NotAfter metav1.Time `json:"notAfter"`

	// dnsNames are the names that it is for; of more than 16 the first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=1024
	DNSNames []string `json:"dnsNames,omitempty"`

	// issuer is the common name of who signed it, or the organization.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Issuer string `json:"issuer,omitempty"`
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

// NginxOperator declares an NGINX instance. The operator creates what it needs (a Deployment, a Service, a ConfigMap, a
// NetworkPolicy and, from two replicas up, a PodDisruptionBudget), keeps it as declared and reports on it.
//
// The name is also the name of the Service, so it has to be a DNS label (RFC 1035): at most 63 lower-case letters,
// digits and hyphens, beginning with a letter.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:deprecatedversion:warning="operator.example.com/v1alpha1 NginxOperator is deprecated; use operator.example.com/v1alpha2, where spec.port is spec.ports (name: http). The same objects can be read and written at both."
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=nginxoperators,singular=nginxoperator,shortName=ngx,categories=all,scope=Namespaced
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="metadata.name must be a DNS label, because the Service gets the same name: at most 63 lower-case letters, digits and hyphens, beginning with a letter and not ending with a hyphen; choose another name"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether all replicas serve the declared configuration"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Replicas that are declared"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.readyReplicas`,description="Replicas that serve"
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.status.image`,description="Image that the operands run"
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`,description="Address of the instance"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1,description="Reason of the Ready condition"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="Message of the Ready condition"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +operator-sdk:csv:customresourcedefinitions:displayName="NGINX instance",resources={{Deployment,v1,""},{ReplicaSet,v1,""},{Pod,v1,""},{Service,v1,""},{ConfigMap,v1,""},{PodDisruptionBudget,v1,""},{NetworkPolicy,v1,""},{Ingress,v1,""},{ControllerRevision,v1,""}}
type NginxOperator struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec declares the instance. Every field has a default, so it may be left out.
	// +optional
	// +default={}
	Spec NginxOperatorSpec `json:"spec,omitempty"`

	// status is what the operator observed; only the operator writes it.
	// +optional
	Status NginxOperatorStatus `json:"status,omitempty"`
}

// NginxOperatorList is a list of NginxOperators.
//
// +kubebuilder:object:root=true
type NginxOperatorList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects of this list.
	Items []NginxOperator `json:"items"`
}
