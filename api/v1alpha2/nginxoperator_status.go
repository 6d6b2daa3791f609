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

	// url is where clients find the instance: the first host of spec.expose once the Ingress has an address or a Gateway has accepted the
	// HTTPRoute, else the load balancer's address where there is one, else that of the Service inside the cluster.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="URL",xDescriptors={"urn:alm:descriptor:org.w3:link"}
	URL string `json:"url,omitempty"`

	// addresses are where the instance is reached from outside of the cluster, none for a Service of type ClusterIP without an Ingress.
	// Those of a Gateway are in the status of the Gateway.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Addresses"
	Addresses []Address `json:"addresses,omitempty"`

	// blockedBy is every reason why what runs is not what the object declares, each with the way out; empty when it is. First what
	// blocks changes, then the child that cannot be written, then why Pods do not serve, then why the HTTPRoute does not, then Paused.
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
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Patched kinds"
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
