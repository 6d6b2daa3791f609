package v1alpha2

// Patch changes the children of a kind in a way that no other field can say.
type Patch struct {
	// target says which children are changed.
	// +required
	Target PatchTarget `json:"target"`

	// patch is what changes, as YAML or JSON, at most 8192 characters: a mapping is a strategic merge patch, a list is a JSON
	// patch (RFC 6902). kustomize's rules hold. What another field declares, and what the operator relies on, it cannot change.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Patch string `json:"patch"`
}

// PatchTarget says which children a patch changes.
type PatchTarget struct {
	// kind of the children.
	// +required
	// +kubebuilder:validation:Enum=Deployment;Service;NetworkPolicy;PodDisruptionBudget
	Kind string `json:"kind"`

	// name of the child. Defaults to every child of the kind.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be lower-case letters, digits, hyphens and dots, and begin and end with a letter or digit, as names of objects do"
	Name string `json:"name,omitempty"`
}
