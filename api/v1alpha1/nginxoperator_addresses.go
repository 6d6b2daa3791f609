package v1alpha1

// AddressType says what an address is.
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

// Address is where an instance is reached from outside of the cluster.
type Address struct {
	// type is Ingress, LoadBalancerIP, LoadBalancerHostname or NodePort.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Type AddressType `json:"type"`

	// value is the IP address, the host name, or the number of the port on each node.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Value string `json:"value"`

	// port is the number of the Service's port that a NodePort stands for. A load balancer has all of the Service.
	// +optional
	Port int32 `json:"port,omitempty"`
}
