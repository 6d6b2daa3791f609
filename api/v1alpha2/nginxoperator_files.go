package v1alpha2

// DefaultCachePath is where nginx finds the volume of spec.cache when its path is not given.
const DefaultCachePath = "/var/cache/nginx"

// File is one key of a ConfigMap or of a Secret that nginx finds as a file.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMapRef) != has(self.secretRef)",message="a file takes exactly one of configMapRef and secretRef"
type File struct {
	// path of the file below /etc/nginx/files: a name, or a directory and a name, at most 127 characters, for example
	// snippets/headers.conf.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_][-._a-zA-Z0-9]*(/[a-zA-Z0-9_][-._a-zA-Z0-9]*)?$') && !self.contains('..')",message="path is a name, or a directory and a name, of letters, digits, hyphens, dots and underscores; none begins with a dot or a hyphen, or has two dots in a row, for example snippets/headers.conf"
	Path string `json:"path"`

	// configMapRef names the key of a ConfigMap of the object's namespace, in its data or binaryData. The operator keeps a copy
	// with each revision.
	// +optional
	ConfigMapRef *FileReference `json:"configMapRef,omitempty"`

	// secretRef names the key of a Secret of the object's namespace. It is mounted, never copied.
	// +optional
	SecretRef *FileReference `json:"secretRef,omitempty"`
}

// FileReference names one key of a ConfigMap or of a Secret in the namespace of the object.
type FileReference struct {
	// name of the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be lower-case letters, digits, hyphens and dots, and begin and end with a letter or digit, as names of objects do"
	Name string `json:"name"`

	// key of the file in it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="key must be letters, digits, hyphens, dots and underscores, as keys of a ConfigMap or Secret are, for example htpasswd"
	Key string `json:"key"`
}

// Cache is a volume that nginx may write to, for proxy_cache_path and its like. Each Pod has its own, and it is gone with the Pod.
type Cache struct {
	// path where it is mounted: /var/cache, /cache, /data, /mnt or /srv, or a directory below one of these, at most 127 characters.
	// Defaults to /var/cache/nginx.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:XValidation:rule="self.matches('^/(var/cache|cache|data|mnt|srv)(/[a-zA-Z0-9_][-._a-zA-Z0-9]*)*$')",message="path is /var/cache, /cache, /data, /mnt or /srv, or a directory below one of these, of letters, digits, hyphens, dots and underscores, for example /var/cache/nginx"
	Path string `json:"path,omitempty"`

	// size of the volume: a number of one to five digits with the unit M, G, Mi or Gi. A Pod that has written more is evicted, so
	// let max_size of all caches in it be smaller.
	// +required
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]{0,4}[MG]i?$')",message="size is a number of one to five digits with the unit M, G, Mi or Gi, for example 500Mi or 2Gi"
	Size string `json:"size"`

	// inMemory keeps the volume in memory and not on the node's disk. What is in it counts to resources.limits.memory.
	// Defaults to false.
	// +optional
	InMemory bool `json:"inMemory,omitempty"`
}
