package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GoodRevision is a revision that all replicas served.
type GoodRevision struct {
	// revision is the name of the revision: the name of the instance, and the change. Releases before
	// 0.8.0 stored it in a ControllerRevision of this name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`

	// change identifies the Pods by two hashes: of the part of the spec and its ConfigMaps that
	// reaches them, and of the Pod template.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Change string `json:"change,omitempty"`

	// image is the container image of the revision.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// configHash is the hash of the nginx configuration. The name of the ConfigMap ends with it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfigHash string `json:"configHash,omitempty"`

	// time is the time when all replicas first served the revision.
	// +required
	Time metav1.Time `json:"time"`
}

// FailedRevision is a revision whose rollout failed and was rolled back.
type FailedRevision struct {
	// revision is the name of the revision.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`

	// change identifies the Pods, as in lastGoodRevision.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Change string `json:"change,omitempty"`

	// secretsHash is a hash of the Secrets that the Pods mounted. Other Secrets are a reason to
	// attempt the revision again at once.
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

	// attempts is the number of rollouts of the revision that failed, up to 1000000. It is absent if
	// a release before 0.8.0 made the only one.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Attempts int32 `json:"attempts,omitempty"`

	// nextAttemptTime is the time when the operator rolls the revision out again: 2, 4, 8, ... 60
	// minutes after a failure. It is absent during an attempt, and if only a change of the spec or of
	// a referenced object can help.
	// +optional
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`

	// attemptTime is the start of the current attempt. It is absent between attempts.
	// +optional
	AttemptTime *metav1.Time `json:"attemptTime,omitempty"`
}

// StoredRevision is a reference to the ControllerRevision that stores the children in effect.
type StoredRevision struct {
	// name is the name of the ControllerRevision.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// hash is the SHA-256 hash of its data.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash"`

	// hasEntrance means that the entrance of the ControllerRevision is in effect. If it is absent,
	// that of the spec is.
	// +optional
	HasEntrance bool `json:"hasEntrance,omitempty"`
}

// DeclaredRevision identifies Pods that were declared.
type DeclaredRevision struct {
	// revision is the name of the revision, or the label operator.example.com/record of a Deployment
	// that a release before 0.8.0 wrote.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`

	// change identifies the Pods, as in lastGoodRevision.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Change string `json:"change"`
}
