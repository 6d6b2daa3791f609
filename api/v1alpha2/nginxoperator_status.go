package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NginxOperatorStatus is the observed state of one NGINX instance.
type NginxOperatorStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of Pods, with the current and with older Pod templates.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of ready Pods, with the current and with older Pod templates.
	// The condition Ready reports whether all of them serve the current spec.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ready replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	ReadyReplicas int32 `json:"readyReplicas"`

	// updatedReplicas is the number of Pods with the current Pod template.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Updated replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`

	// selector is the label selector of the Pods as a string, for the scale subresource.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector"
	Selector string `json:"selector,omitempty"`

	// image is the container image of nginx in the Pod template that the operator applied last.
	// During a rollout, older Pods can run another image.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Image"
	Image string `json:"image,omitempty"`

	// url is the URL of the instance. It is the first host of spec.expose once the Ingress has
	// an address or a Gateway accepts the HTTPRoute. Otherwise it is the load balancer's
	// address, or the Service's address in the cluster if there is no load balancer.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="URL",xDescriptors={"urn:alm:descriptor:org.w3:link"}
	URL string `json:"url,omitempty"`

	// addresses are the addresses of the instance outside the cluster. A Service of type
	// ClusterIP without an Ingress has none. For the addresses of a Gateway, see the status of
	// the Gateway.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Addresses"
	Addresses []Address `json:"addresses,omitempty"`

	// blockedBy lists the reasons why the running state differs from the spec, with remedies. The
	// instance is blocked while the list has an entry, even if it is Ready. The order is: reasons
	// why the spec is not applied, child objects that cannot be written, Pods that do not serve,
	// an HTTPRoute that is not accepted, Paused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Blocked by"
	BlockedBy []Blocker `json:"blockedBy,omitempty"`

	// lastGoodRevision identifies the good Pods: the last ones with which all replicas were updated
	// and available. The operator rolls back to them if the rollout of a change fails.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last good revision"
	LastGoodRevision *GoodRevision `json:"lastGoodRevision,omitempty"`

	// storedRevision references the ControllerRevision with a copy of the good Pods and of the
	// entrance in front of them. It exists while a change of the Pods rolls out or was rolled back,
	// and while the spec cannot be used. The operator ignores a ControllerRevision with another hash.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Stored revision"
	StoredRevision *StoredRevision `json:"storedRevision,omitempty"`

	// declaredRevision identifies the Pods that the operator applied last.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Declared revision"
	DeclaredRevision *DeclaredRevision `json:"declaredRevision,omitempty"`

	// acceptedValues are hashes of values in the spec that this release rejects in a new write. An
	// older release accepted them, so they stay in effect.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Accepted values"
	AcceptedValues []string `json:"acceptedValues,omitempty"`

	// firstDeclarationHash has no effect. Releases before 0.8.0 set it to the SHA-256 hash of the
	// first spec.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="First declaration hash"
	FirstDeclarationHash string `json:"firstDeclarationHash,omitempty"`

	// failedRevisions identify failed Pods, at most 4: their rollout failed, and the operator rolled
	// it back. The operator attempts it again, with increasing delays, unless nginx rejects the
	// configuration.
	// +optional
	// +listType=map
	// +listMapKey=revision
	// +kubebuilder:validation:MaxItems=4
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Failed revisions"
	FailedRevisions []FailedRevision `json:"failedRevisions,omitempty"`

	// certificates are the certificates of spec.tls that the Pods mount.
	// +optional
	// +listType=map
	// +listMapKey=secretName
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Certificates"
	Certificates []Certificate `json:"certificates,omitempty"`

	// patchedKinds are the kinds of the child objects that spec.patches changes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Patched kinds"
	PatchedKinds []string `json:"patchedKinds,omitempty"`

	// relatedObjects are the child objects of the instance.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Related objects"
	RelatedObjects []RelatedObject `json:"relatedObjects,omitempty"`

	// conditions are Ready, Progressing, and Degraded. CertificatesValid exists if spec.tls
	// references usable certificates. Outdated exists if the spec has values that this release
	// rejects in a new write. The troubleshooting guide documents all reasons.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Blocker is a reason why the running state of an instance differs from the spec.
type Blocker struct {
	// reason is a reason of the condition Degraded, or Paused.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`

	// message has the field or object, the problem, and the remedy.
	// +required
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message"`
}

// Certificate describes a certificate in use, with the data that TLS clients can see.
type Certificate struct {
	// secretName is the name of the Secret with the certificate.
	// +required
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// notAfter is the expiry time of the certificate.
	// +required
	NotAfter metav1.Time `json:"notAfter"`

	// dnsNames are the DNS names of the certificate, at most the first 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=1024
	DNSNames []string `json:"dnsNames,omitempty"`

	// issuer is the common name of the issuer, or its organization if it has no common name.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Issuer string `json:"issuer,omitempty"`
}

// RelatedObject is a child object in the namespace of the NginxOperator.
type RelatedObject struct {
	// apiVersion is the API group and version of the object, for example apps/v1.
	// +required
	APIVersion string `json:"apiVersion"`

	// kind is the kind of the object, for example Deployment.
	// +required
	Kind string `json:"kind"`

	// name is the name of the object.
	// +required
	Name string `json:"name"`
}
