package v1alpha2

// Expose makes the instance reachable from outside of the cluster, beside what the type of its Service does.
// +kubebuilder:validation:XValidation:rule="has(self.ingress) != has(self.httpRoute)",message="expose takes exactly one of ingress and httpRoute"
type Expose struct {
	// ingress is an Ingress in front of the Service. It is served by an Ingress controller, which the cluster has to have.
	// +optional
	Ingress *Ingress `json:"ingress,omitempty"`

	// httpRoute is an HTTPRoute of the Gateway API (gateway.networking.k8s.io/v1) in front of the Service. The cluster has to have that
	// API, and a Gateway that accepts the route.
	// +optional
	HTTPRoute *HTTPRoute `json:"httpRoute,omitempty"`
}

// HTTPRoute says how the HTTPRoute in front of the Service looks. It has one rule: every path goes to the instance.
type HTTPRoute struct {
	// parentRefs are the Gateways whose clients reach the instance, 1 to 8.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	ParentRefs []GatewayReference `json:"parentRefs"`

	// hostnames are the names under which clients reach the instance, at most 16: DNS names, or wildcards for all names below a domain,
	// for example *.example.com. Defaults to every name that the Gateways listen for.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Hostnames []string `json:"hostnames,omitempty"`
}

// GatewayReference names a Gateway, or one of its listeners.
type GatewayReference struct {
	// name of the Gateway.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be lower-case letters, digits, hyphens and dots, and begin and end with a letter or digit, as names of objects do"
	Name string `json:"name"`

	// namespace of the Gateway, which has to allow routes from the object's. Defaults to the object's namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be lower-case letters, digits and hyphens, and begin and end with a letter or digit, as names of namespaces do"
	Namespace string `json:"namespace,omitempty"`

	// sectionName is the name of the one listener that takes the route. Defaults to all listeners that allow it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="sectionName must be lower-case letters, digits, hyphens and dots, and begin and end with a letter or digit, as names of listeners do"
	SectionName string `json:"sectionName,omitempty"`

	// port is that of the listeners that take the route. Defaults to the listeners of every port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
}

// Ingress says how the Ingress in front of the Service looks.
type Ingress struct {
	// className names the IngressClass, and with it the controller that serves the Ingress. Defaults to the class that the
	// cluster marks as its default.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="className must be lower-case letters, digits, hyphens and dots, and begin and end with a letter or digit, as names of objects do"
	ClassName *string `json:"className,omitempty"`

	// annotations of the Ingress, at most 64, for example those that its controller reads.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('operator.example.com/'))",message="the annotations that begin with operator.example.com/ are the operator's; remove them, or use a prefix of your own"
	Annotations map[string]string `json:"annotations,omitempty"`

	// hosts are the names under which clients reach the instance, 1 to 16.
	// +required
	// +listType=map
	// +listMapKey=host
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Hosts []IngressHost `json:"hosts"`
}

// IngressHost is a name under which clients reach the instance.
type IngressHost struct {
	// host is a DNS name, or a wildcard for all names one label below a domain, for example *.example.com.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`

	// paths are the prefixes of the paths that reach the instance, 1 to 16, element by element as an Ingress compares them
	// (pathType Prefix). Defaults to /, which is every path.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Paths []string `json:"paths,omitempty"`

	// tlsSecretName names a Secret of type kubernetes.io/tls in the object's namespace, with whose certificate the Ingress
	// controller speaks TLS for the host. The operator does not read it. Defaults to none: plain HTTP.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="tlsSecretName must be lower-case letters, digits, hyphens and dots, and begin and end with a letter or digit, as names of objects do"
	TLSSecretName string `json:"tlsSecretName,omitempty"`
}
