package v1alpha2

// Expose makes the instance reachable from outside the cluster, in addition to the Service.
// +kubebuilder:validation:XValidation:rule="!has(self.ingress) || !has(self.httpRoute)",message="expose has both ingress and httpRoute; keep one, and remove the other"
type Expose struct {
	// ingress creates an Ingress for the Service. The cluster must run an Ingress controller.
	// +optional
	Ingress *Ingress `json:"ingress,omitempty"`

	// httpRoute creates an HTTPRoute (gateway.networking.k8s.io/v1) for the Service. The cluster
	// must serve the Gateway API and have a Gateway that accepts the route.
	// +optional
	HTTPRoute *HTTPRoute `json:"httpRoute,omitempty"`
}

// HTTPRoute configures the HTTPRoute for the Service. The HTTPRoute has one rule, which routes
// all paths to the instance.
type HTTPRoute struct {
	// parentRefs are the Gateways that route to the instance, 1 to 8.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	ParentRefs []GatewayReference `json:"parentRefs"`

	// hostnames are the host names that the route matches, at most 16. Each is a DNS name, or a
	// wildcard for all names below a domain, for example *.example.com. Defaults to all host
	// names of the Gateway listeners.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(name, !name.matches(r'[\\p{Z}\\p{C}\\x22\\x27\\x60;{}\\x5C]'))",message="hostnames must not have quotes, semicolons, braces, backslashes, whitespace, or control characters; write DNS names"
	Hostnames []string `json:"hostnames,omitempty"`
}

// GatewayReference references a Gateway, or one of its listeners.
type GatewayReference struct {
	// name is the name of the Gateway.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must consist of lower-case letters, digits, hyphens, and dots, and each part between dots must start and end with a letter or digit; write for example public"
	Name string `json:"name"`

	// namespace is the namespace of the Gateway. The Gateway must allow routes from the
	// namespace of the NginxOperator. Defaults to the namespace of the NginxOperator.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must contain only lower-case letters, digits, and hyphens, and must start and end with a letter or digit; write for example gateways"
	Namespace string `json:"namespace,omitempty"`

	// sectionName is the name of the listener to attach to. Defaults to all listeners that allow
	// the route.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="sectionName must consist of lower-case letters, digits, hyphens, and dots, and each part between dots must start and end with a letter or digit; write for example https"
	SectionName string `json:"sectionName,omitempty"`

	// port is the port of the listeners to attach to, 1 to 65535. Defaults to the listeners of
	// all ports.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
}

// Ingress configures the Ingress for the Service.
type Ingress struct {
	// className is the name of the IngressClass, which selects the Ingress controller. Defaults
	// to the default class of the cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="className must consist of lower-case letters, digits, hyphens, and dots, and each part between dots must start and end with a letter or digit; write for example nginx"
	ClassName *string `json:"className,omitempty"`

	// annotations of the Ingress, at most 64, for example to configure the Ingress controller.
	// The prefix operator.example.com/ is reserved.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('operator.example.com/'))",message="annotations with the prefix operator.example.com/ are reserved for the operator; remove them, or use your own prefix"
	Annotations map[string]string `json:"annotations,omitempty"`

	// hosts are the host names of the instance, 1 to 16.
	// +required
	// +listType=map
	// +listMapKey=host
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Hosts []IngressHost `json:"hosts"`
}

// IngressHost is a host name of the instance, with its paths and certificate.
type IngressHost struct {
	// host is a DNS name, or a wildcard for all names one label below a domain, for example
	// *.example.com.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.matches(r'[\\p{Z}\\p{C}\\x22\\x27\\x60;{}\\x5C]')",message="host must not have quotes, semicolons, braces, backslashes, whitespace, or control characters; write a DNS name"
	Host string `json:"host"`

	// paths are the path prefixes that are routed to the instance, 1 to 16, matched element by
	// element (pathType Prefix). Percent-encode quotes, semicolons, braces, backslashes,
	// whitespace, and control characters. Defaults to /, which matches all paths.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.all(path, !path.matches(r'[\\p{Z}\\p{C}\\x22\\x27\\x60;{}\\x5C]'))",message="paths must not have quotes, semicolons, braces, backslashes, whitespace, or control characters; write them percent-encoded, for example %20 for a space"
	Paths []string `json:"paths,omitempty"`

	// tlsSecretName references a Secret of type kubernetes.io/tls in the same namespace. The
	// Ingress controller serves the host with its certificate. The operator does not read the
	// Secret. Defaults to none: plain HTTP.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="tlsSecretName must consist of lower-case letters, digits, hyphens, and dots, and each part between dots must start and end with a letter or digit; write for example web-tls"
	TLSSecretName string `json:"tlsSecretName,omitempty"`
}
