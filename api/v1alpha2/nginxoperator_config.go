package v1alpha2

// Config is nginx configuration from exactly one of two sources.
//
// +kubebuilder:validation:XValidation:rule="has(self.inline) != has(self.configMapRef)",message="config must have exactly one of inline and configMapRef; set one and remove the other, or remove config"
type Config struct {
	// inline is the configuration text, at most 65536 characters. Use configMapRef for a longer
	// text.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Inline string `json:"inline,omitempty"`

	// configMapRef references a ConfigMap key in the same namespace. A change of its content
	// starts a rollout. The operator does not roll out a configuration that it rejects, and rolls
	// back a change that nginx rejects. The status reports both.
	// +optional
	ConfigMapRef *ConfigMapKeyReference `json:"configMapRef,omitempty"`

	// values are values that the operator writes for ${NAME} into the text, at most 64. Each stays a
	// part of its word. A changed value starts a rollout. Defaults to none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Values []ConfigValue `json:"values,omitempty"`
}

// ConfigValue is a value for ${NAME} in the configuration, from exactly one of two sources.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) != has(self.valueFrom)",message="an entry of values must have exactly one of value and valueFrom; set one, and remove the other"
type ConfigValue struct {
	// name is the name, in capital letters, at most 63 characters, for example BACKEND_HOST. The
	// text has it as ${BACKEND_HOST}.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Z0-9_]*$')",message="name must start with a capital letter, and consist of capital letters, digits, and underscores; write for example BACKEND_HOST"
	Name string `json:"name"`

	// value is the value, 1 to 1024 characters without control characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="value must not have control characters, for example a newline; write it in one line"
	Value string `json:"value,omitempty"`

	// valueFrom is a source for the value.
	// +optional
	ValueFrom *ConfigValueSource `json:"valueFrom,omitempty"`
}

// ConfigValueSource is a source for a value of the configuration.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMapKeyRef) != has(self.fieldRef)",message="valueFrom must have exactly one of configMapKeyRef and fieldRef; set one, and remove the other"
type ConfigValueSource struct {
	// configMapKeyRef references a key of a ConfigMap in the same namespace. Its value has 1 to 1024
	// bytes, without $ and control characters, except for one newline at its end. It cannot be the
	// first word of a directive, or a part of an include.
	// +optional
	ConfigMapKeyRef *ObjectKeyReference `json:"configMapKeyRef,omitempty"`

	// fieldRef references a field of the NginxOperator.
	// +optional
	FieldRef *ConfigValueField `json:"fieldRef,omitempty"`
}

// ConfigValueField references a field of the NginxOperator.
type ConfigValueField struct {
	// fieldPath is metadata.namespace or metadata.name.
	// +required
	// +kubebuilder:validation:Enum=metadata.namespace;metadata.name
	FieldPath string `json:"fieldPath"`
}

// ConfigMapKeyReference references a key of a ConfigMap in the same namespace.
type ConfigMapKeyReference struct {
	// name is the name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must consist of lower-case letters, digits, hyphens, and dots, and each part between dots must start and end with a letter or digit; write for example web-config"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="ConfigMap",xDescriptors={"urn:alm:descriptor:io.kubernetes:ConfigMap"}
	Name string `json:"name"`

	// key is the key in the ConfigMap's data, or a mask with one *, for example *.conf. With a mask,
	// nginx includes all matching keys, at most 256, one after the other in byte order. Defaults to
	// nginx.conf.
	// +optional
	// +default="nginx.conf"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]*[*]?[-._a-zA-Z0-9]*$') && self != '.' && !self.startsWith('..')",message="key must contain only letters, digits, hyphens, dots, underscores, and at most one *, and must not be a dot or start with two dots; write for example nginx.conf"
	Key string `json:"key,omitempty"`
}

// Nginx tunes settings of nginx.conf that the operator manages.
type Nginx struct {
	// workerProcesses is the number of nginx worker processes (worker_processes), 1 to 1024.
	// Defaults to resources.limits.cpu, rounded up, or to the number of CPUs of the node if
	// there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	WorkerProcesses *int32 `json:"workerProcesses,omitempty"`

	// workerConnections is the maximum number of open connections per worker process
	// (worker_connections), 64 to 65535. Connections to clients and to upstreams both count.
	// Defaults to 1024.
	// +optional
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=65535
	WorkerConnections *int32 `json:"workerConnections,omitempty"`

	// errorLogLevel is the lowest severity that nginx logs to the container's output
	// (error_log). Defaults to notice.
	// +optional
	// +kubebuilder:validation:Enum=debug;info;notice;warn;error;crit;alert;emerg
	ErrorLogLevel string `json:"errorLogLevel,omitempty"`

	// accessLog logs each request to the container's output (access_log). An access_log
	// directive in config takes precedence. Defaults to true.
	// +optional
	AccessLog *bool `json:"accessLog,omitempty"`

	// main has directives of nginx's main context, for example worker_rlimit_nofile, up to 16 KiB.
	// Directives that the operator sets, and blocks, are rejected.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Main string `json:"main,omitempty"`

	// events has directives of nginx's events context, for example multi_accept, up to 16 KiB.
	// Directives that the operator sets are rejected.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Events string `json:"events,omitempty"`

	// modules are dynamic modules of the image to load, at most 16, in this order (load_module).
	// Each is the name of a file in nginx's directory of modules without ".so", for example
	// ngx_http_js_module.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9_]+$')",message="a module is the name of its file without .so, of lower-case letters, digits, and underscores; write for example ngx_http_js_module"
	Modules []string `json:"modules,omitempty"`

	// resolver sets the name servers that resolve names of upstreams while nginx runs (resolver), for
	// example in a proxy_pass with a variable. Defaults to none.
	// +optional
	Resolver *Resolver `json:"resolver,omitempty"`
}

// Resolver has the name servers of nginx.
type Resolver struct {
	// addresses are the name servers, at most 8: IP addresses or names, each with an optional port,
	// for example 192.0.2.53, 2001:db8::53, or [2001:db8::53]:5353. Defaults to the name servers that
	// the cluster gives its Pods.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=259
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-zA-Z0-9._-]+(:[0-9]{1,5})?$|^[0-9a-fA-F:.]+$|^[[][0-9a-fA-F:.]+[]](:[0-9]{1,5})?$')",message="an address must be an IP address or a name, with an optional port; write for example 192.0.2.53 or [2001:db8::53]:53"
	Addresses []string `json:"addresses,omitempty"`

	// valid is how long nginx caches an answer, a number of seconds, or a number with the unit s, m,
	// h, or d, for example 30s. Defaults to the TTL of the answer.
	// +optional
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]{0,5}[smhd]?$')",message="valid must be a number of one to six digits, with an optional unit s, m, h, or d; write for example 30s"
	Valid string `json:"valid,omitempty"`

	// ipv6 resolves names to IPv6 addresses, too. Defaults to true.
	// +optional
	IPv6 *bool `json:"ipv6,omitempty"`
}

// Content is the source of static files.
type Content struct {
	// configMapRef references a ConfigMap in the same namespace. Each key of its data and
	// binaryData becomes a file, unless items selects keys. A change of its content starts a
	// rollout.
	// +required
	ConfigMapRef ConfigMapReference `json:"configMapRef"`
}

// ConfigMapReference references a ConfigMap in the same namespace.
type ConfigMapReference struct {
	// name is the name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must consist of lower-case letters, digits, hyphens, and dots, and each part between dots must start and end with a letter or digit; write for example web-pages"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="ConfigMap",xDescriptors={"urn:alm:descriptor:io.kubernetes:ConfigMap"}
	Name string `json:"name"`

	// items are the keys to serve, at most 256, each with the path of its file, which can have
	// directories. A key can have several paths. Defaults to all keys, each with its own name as the
	// path.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Items []ContentItem `json:"items,omitempty"`
}

// ContentItem maps a key of a ConfigMap to a file.
type ContentItem struct {
	// key is the key in the data or binaryData of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="key must contain only letters, digits, hyphens, dots, and underscores, and must not be a dot or start with two dots; write for example index.html"
	Key string `json:"key"`

	// path is the path of the file below /usr/share/nginx/html, at most 255 characters, for example
	// css/site.css.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._~@+a-zA-Z0-9]+(/[-._~@+a-zA-Z0-9]+)*$') && !self.matches('(^|/)([.]/|[.]$|[.][.])')",message="path must be relative, of letters, digits, and the characters -._~@+, and no part between slashes may be a dot or start with two dots; write for example css/site.css"
	Path string `json:"path"`
}
