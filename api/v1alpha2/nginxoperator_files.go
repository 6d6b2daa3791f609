package v1alpha2

// DefaultCachePath is the mount path of the cache volume if spec.cache.path is not set.
const DefaultCachePath = "/var/cache/nginx"

// File is a key of a ConfigMap or Secret that is mounted as a file, or a directory with the keys of a
// ConfigMap that a mask matches.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMapRef) != has(self.secretRef)",message="an entry of files must have exactly one of configMapRef and secretRef; set one, and remove the other"
type File struct {
	// path is the file path below /etc/nginx/files: a name, or a directory and a name, at most
	// 127 characters, for example snippets/headers.conf. If the key is a mask, path is the directory
	// of the files, for example snippets, and no other file can be in its first directory.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_][-._a-zA-Z0-9]*(/[a-zA-Z0-9_][-._a-zA-Z0-9]*)?$') && !self.contains('..')",message="path must be a name, or a directory and a name, of letters, digits, hyphens, dots, and underscores; neither may start with a dot or a hyphen, or have two dots in a row; write for example snippets/headers.conf"
	Path string `json:"path"`

	// configMapRef references a key in the data or binaryData of a ConfigMap in the same
	// namespace. The operator stores a copy of the content for each revision of the Deployment.
	// +optional
	ConfigMapRef *FileReference `json:"configMapRef,omitempty"`

	// secretRef references a key of a Secret in the same namespace. The Secret is mounted, never
	// copied.
	// +optional
	SecretRef *ObjectKeyReference `json:"secretRef,omitempty"`
}

// FileReference references a key of a ConfigMap in the same namespace.
type FileReference struct {
	// name is the name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must consist of lower-case letters, digits, hyphens, and dots, and each part between dots must start and end with a letter or digit; write for example snippets"
	Name string `json:"name"`

	// key is the key of the file in the ConfigMap, or a mask with one *, for example *.conf. With a
	// mask, each matching key, at most 256, is a file in the directory path.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]*[*]?[-._a-zA-Z0-9]*$') && self != '.' && !self.startsWith('..')",message="key must contain only letters, digits, hyphens, dots, underscores, and at most one *, and must not be a dot or start with two dots; write for example headers.conf"
	Key string `json:"key"`
}

// ObjectKeyReference references a key of a ConfigMap or Secret in the same namespace.
type ObjectKeyReference struct {
	// name is the name of the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must consist of lower-case letters, digits, hyphens, and dots, and each part between dots must start and end with a letter or digit; write for example readers"
	Name string `json:"name"`

	// key is the key in the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="key must contain only letters, digits, hyphens, dots, and underscores, and must not be a dot or start with two dots; write for example htpasswd"
	Key string `json:"key"`
}

// Cache is a writable volume, for example for proxy_cache_path. Each Pod has its own volume,
// which is deleted with the Pod.
type Cache struct {
	// path is the mount path: /var/cache, /cache, /data, /mnt, or /srv, or a directory below one
	// of these, at most 127 characters. Defaults to /var/cache/nginx.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:XValidation:rule="self.matches('^/(var/cache|cache|data|mnt|srv)(/[a-zA-Z0-9_][-._a-zA-Z0-9]*)*$')",message="path must be /var/cache, /cache, /data, /mnt, or /srv, or a directory below one of these, of letters, digits, hyphens, dots, and underscores, for example /var/cache/nginx"
	Path string `json:"path,omitempty"`

	// size is the size of the volume: a number of one to five digits with the unit M, G, Mi, or
	// Gi. A Pod that writes more is evicted. With inMemory, the write fails instead. Keep the
	// total max_size of all nginx caches below this size.
	// +required
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]{0,4}[MG]i?$')",message="size must be a number of one to five digits with the unit M, G, Mi, or Gi, for example 500Mi or 2Gi"
	Size string `json:"size"`

	// inMemory stores the volume in memory instead of on the node's disk. Its content counts
	// toward resources.limits.memory. Defaults to false.
	// +optional
	InMemory bool `json:"inMemory,omitempty"`
}
