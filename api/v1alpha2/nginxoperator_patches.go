package v1alpha2

// Patch changes child objects of a kind in ways that no other field supports.
type Patch struct {
	// target selects the child objects to change.
	// +required
	Target PatchTarget `json:"target"`

	// patch is the change, in YAML or JSON, at most 8192 characters. A mapping is a strategic
	// merge patch. A list is a JSON patch (RFC 6902). Both follow the rules of kustomize. A
	// patch cannot change values that another field sets or that the operator depends on.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Patch string `json:"patch"`
}

// PatchTarget selects the child objects that a patch changes.
type PatchTarget struct {
	// kind is the kind of the child objects.
	// +required
	// +kubebuilder:validation:Enum=Deployment;Service;NetworkPolicy;PodDisruptionBudget
	Kind string `json:"kind"`

	// name is the name of the child object. Defaults to all child objects of the kind.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must consist of lower-case letters, digits, hyphens, and dots, and each part between dots must start and end with a letter or digit; write for example web"
	Name string `json:"name,omitempty"`
}
