package v1alpha1

// AddressType is the type of an address.
type AddressType string

// Types of addresses.
const (
	// AddressIngress is an IP address or host name of the Ingress.
	AddressIngress AddressType = "Ingress"
	// AddressLoadBalancerIP is an IP address of the load balancer.
	AddressLoadBalancerIP AddressType = "LoadBalancerIP"
	// AddressLoadBalancerHostname is a host name of the load balancer.
	AddressLoadBalancerHostname AddressType = "LoadBalancerHostname"
	// AddressNodePort is a port on each node.
	AddressNodePort AddressType = "NodePort"
)

// Address is an address of the instance outside the cluster.
type Address struct {
	// type is Ingress, LoadBalancerIP, LoadBalancerHostname, or NodePort.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Type AddressType `json:"type"`

	// value is the IP address, the host name, or the port number on each node.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Value string `json:"value"`

	// port is the Service port that a NodePort forwards to. It is not set for other types: they
	// serve all Service ports.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}
