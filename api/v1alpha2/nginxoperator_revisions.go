package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GoodRevision identifies good Pods. A revision is the Pods of a spec: the Pod template, and the
// nginx configuration, content, and files that it mounts.
type GoodRevision struct {
	// revision is the name of the revision: the name of the instance, a hyphen, and change. Releases
	// before 0.8.0 stored the spec in a ControllerRevision, and used its name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`

	// change identifies the Pods by two hashes. The first is the hash of the spec, as far as it
	// affects the Pods, with the content of the ConfigMaps. The second is the hash of the Pod
	// template.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Change string `json:"change,omitempty"`

	// image is the container image of nginx.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// configHash is the hash of the nginx configuration. The name of the ConfigMap ends with it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfigHash string `json:"configHash,omitempty"`

	// time is the time when all replicas were first updated and available.
	// +required
	Time metav1.Time `json:"time"`
}

// FailedRevision identifies Pods whose rollout failed and was rolled back.
type FailedRevision struct {
	// revision is the name of the revision.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`

	// change identifies the Pods, as in lastGoodRevision.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Change string `json:"change,omitempty"`

	// secretsHash is the hash of the Secrets that the Pods mounted. If a Secret changes, the operator
	// attempts the rollout again at once.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	SecretsHash string `json:"secretsHash,omitempty"`

	// reason is the cause of the failure, a reason of the condition Degraded.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`

	// message describes the change and the failure, with the error message of nginx or the
	// kubelet.
	// +required
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message"`

	// time is the time when the operator detected the failure.
	// +required
	Time metav1.Time `json:"time"`

	// attempts is the number of failed rollouts of the revision, up to 1000000. It is absent if the
	// only one was by a release before 0.8.0.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Attempts int32 `json:"attempts,omitempty"`

	// nextAttemptTime is the time of the next rollout of the revision: 2, 4, 8, ... 60 minutes after
	// a failure. It is absent during an attempt, and if the operator attempts the rollout again only
	// after a change of the spec or of a referenced object.
	// +optional
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`

	// attemptTime is the start of the current attempt. It is absent between attempts.
	// +optional
	AttemptTime *metav1.Time `json:"attemptTime,omitempty"`
}

// StoredRevision references the ControllerRevision with a copy of the children in effect.
type StoredRevision struct {
	// name is the name of the ControllerRevision.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// hash is the SHA-256 hash of its data.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash"`

	// hasEntrance is true if the entrance in the ControllerRevision is in effect. Otherwise, the
	// entrance of the spec is in effect. The entrance is the Service, the Ingress or HTTPRoute, the
	// NetworkPolicy, the PodMonitor, and the PrometheusRule.
	// +optional
	HasEntrance bool `json:"hasEntrance,omitempty"`
}

// DeclaredRevision identifies the Pods that the operator applied last.
type DeclaredRevision struct {
	// revision is the name of the revision. For a Deployment that a release before 0.8.0 wrote, it is
	// the value of the label operator.example.com/record.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`

	// change identifies the Pods, as in lastGoodRevision.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Change string `json:"change"`
}
