package v1alpha2

// This file has the ports, the Service, and the NetworkPolicy of an instance.

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// Port is a port of the Service. It serves plain HTTP, unless appProtocol is https.
type Port struct {
	// name is the name of the port in the Service: a DNS label of at most 15 characters with at
	// least one letter (RFC 6335). The name health and the prefix tls- are reserved.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.matches('[a-z]') && !self.contains('--')",message="a port name must contain only lower-case letters, digits, and single hyphens, with at least one letter and no hyphen at either end, for example http"
	// +kubebuilder:validation:XValidation:rule="self != 'health' && !self.startsWith('tls-')",message="the port name health and the prefix tls- are reserved for the operator; choose another name"
	Name string `json:"name"`

	// port is the port number of the Service, 1 to 65535.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// targetPort is the port number that nginx listens on, 1 to 65535. Defaults to port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	TargetPort *int32 `json:"targetPort,omitempty"`

	// nodePort is the port on each node, 1 to 65535. It requires a Service of type NodePort or
	// LoadBalancer. The number must be free and in the cluster's range (usually 30000 to 32767).
	// Defaults to a free port that Kubernetes chooses.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	NodePort *int32 `json:"nodePort,omitempty"`

	// appProtocol is the application protocol of the port, for load balancers, gateways, and
	// meshes: http, https, kubernetes.io/h2c (HTTP/2 without TLS), kubernetes.io/ws (WebSocket),
	// or a name with a vendor's prefix, at most 317 characters. If it is https, nginx serves TLS
	// on the port: with the first certificate of tls, or as config specifies. If it is not set, the
	// Service has none, and nginx serves plain HTTP.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="appProtocol must be a name such as http, or a domain and a name such as kubernetes.io/ws; each must contain only letters, digits, hyphens, dots, and underscores, and must start and end with a letter or digit"
	AppProtocol string `json:"appProtocol,omitempty"`

	// protocol of the port. Only TCP is supported. Defaults to TCP.
	// +optional
	// +default="TCP"
	// +kubebuilder:validation:Enum=TCP
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// TLS is a certificate and the port that serves it.
//
// +kubebuilder:validation:XValidation:rule="has(self.port) || !has(self.targetPort) && !has(self.nodePort)",message="targetPort and nodePort in tls require port; set port, or remove them"
type TLS struct {
	// secretName references a Secret of type kubernetes.io/tls in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="secretName must consist of lower-case letters, digits, hyphens, and dots, and each part between dots must start and end with a letter or digit; write for example web-tls"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Secret",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	SecretName string `json:"secretName"`

	// port is the port number of the Service that serves TLS with this certificate, 1 to 65535.
	// Without config, the first certificate defaults to 8443. A certificate without a port is
	// only mounted, for use in config. With config, the server blocks must listen on the port.
	// Several certificates can then have the same port, and server blocks select one by
	// server_name.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// targetPort is the port number that nginx listens on, 1 to 65535. Defaults to port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	TargetPort *int32 `json:"targetPort,omitempty"`

	// nodePort is the port on each node, 1 to 65535. It requires a Service of type NodePort or
	// LoadBalancer. The number must be free and in the cluster's range (usually 30000 to 32767).
	// Defaults to a free port that Kubernetes chooses. If several certificates have the same
	// port, the first one sets nodePort.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	NodePort *int32 `json:"nodePort,omitempty"`
}

// Service configures the Service of the instance.
//
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancerClass) || self.type == 'LoadBalancer'",message="loadBalancerClass requires type LoadBalancer; set type to LoadBalancer, or remove loadBalancerClass",fieldPath=".loadBalancerClass"
// +kubebuilder:validation:XValidation:rule="!has(self.externalTrafficPolicy) || self.type != 'ClusterIP'",message="externalTrafficPolicy requires type NodePort or LoadBalancer; set type to one of them, or remove externalTrafficPolicy",fieldPath=".externalTrafficPolicy"
// +kubebuilder:validation:XValidation:rule=`self.type != 'LoadBalancer' || oldSelf.type != 'LoadBalancer' || (has(self.loadBalancerClass) ? self.loadBalancerClass : "") == (has(oldSelf.loadBalancerClass) ? oldSelf.loadBalancerClass : "")`,message="loadBalancerClass cannot be changed while type is LoadBalancer (Kubernetes forbids it); set type ClusterIP first, then type and class again",fieldPath=".loadBalancerClass"
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancerSourceRanges) || self.type == 'LoadBalancer'",message="loadBalancerSourceRanges requires type LoadBalancer; set type to LoadBalancer, or remove loadBalancerSourceRanges",fieldPath=".loadBalancerSourceRanges"
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilies) || (size(self.ipFamilies) == 2) == (has(self.ipFamilyPolicy) && self.ipFamilyPolicy != 'SingleStack')",message="ipFamilies must have two families with ipFamilyPolicy PreferDualStack or RequireDualStack, and one with SingleStack; correct ipFamilies or ipFamilyPolicy",fieldPath=".ipFamilies"
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilies) || !has(oldSelf.ipFamilies) || self.ipFamilies[0] == oldSelf.ipFamilies[0]",message="the first entry of ipFamilies cannot be changed (Kubernetes forbids it); restore the first entry, or create another NginxOperator",fieldPath=".ipFamilies"
type Service struct {
	// type is ClusterIP, NodePort, or LoadBalancer. Defaults to ClusterIP.
	// +optional
	// +default="ClusterIP"
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Service type",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:ClusterIP","urn:alm:descriptor:com.tectonic.ui:select:NodePort","urn:alm:descriptor:com.tectonic.ui:select:LoadBalancer"}
	Type corev1.ServiceType `json:"type,omitempty"`

	// annotations of the Service, at most 64, for example to configure a cloud load balancer.
	// The prefix operator.example.com/ is reserved.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('operator.example.com/'))",message="annotations with the prefix operator.example.com/ are reserved for the operator; remove them, or use your own prefix"
	Annotations map[string]string `json:"annotations,omitempty"`

	// labels of the Service, at most 64, in addition to the operator's labels.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('operator.example.com/') && !(k in ['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/version', 'app.kubernetes.io/component', 'app.kubernetes.io/part-of', 'app.kubernetes.io/managed-by']))",message="the labels app.kubernetes.io/name, instance, version, component, part-of, and managed-by, and the prefix operator.example.com/ are reserved for the operator; remove these labels, or use your own prefix"
	Labels map[string]string `json:"labels,omitempty"`

	// loadBalancerClass selects the load balancer implementation of a Service of type
	// LoadBalancer. It cannot be changed while type is LoadBalancer. Defaults to the default
	// implementation of the cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty"`

	// externalTrafficPolicy is Cluster or Local, for the types NodePort and LoadBalancer. Local
	// preserves the client's IP address and routes only to nodes that run a Pod of the instance.
	// Defaults to Cluster.
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`

	// internalTrafficPolicy is Cluster or Local. Local routes clients inside the cluster only to
	// Pods on the client's node. If that node has no Pod, connections fail. Defaults to Cluster.
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	InternalTrafficPolicy *corev1.ServiceInternalTrafficPolicy `json:"internalTrafficPolicy,omitempty"`

	// sessionAffinity is None or ClientIP. ClientIP routes a client to the same Pod until three
	// hours after its last connection. Defaults to None.
	// +optional
	// +kubebuilder:validation:Enum=None;ClientIP
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// loadBalancerSourceRanges are the client networks that the load balancer allows, in CIDR
	// notation, 1 to 64. It requires type LoadBalancer and a load balancer that supports it.
	// Defaults to all networks.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="self.all(range, range.matches('^[0-9a-fA-F:.]{2,45}/[0-9]{1,3}$'))",message="loadBalancerSourceRanges must be networks in CIDR notation; write for example 192.0.2.0/24, or 192.0.2.7/32 for one address"
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`

	// ipFamilyPolicy is SingleStack, PreferDualStack (both families if the cluster supports
	// both), or RequireDualStack. Defaults to SingleStack.
	// +optional
	// +kubebuilder:validation:Enum=SingleStack;PreferDualStack;RequireDualStack
	IPFamilyPolicy *corev1.IPFamilyPolicy `json:"ipFamilyPolicy,omitempty"`

	// ipFamilies are the address families of the Service, IPv4 and IPv6. Clients that support
	// only one address use the first family. The first family cannot be changed after the
	// Service is created. Defaults to the cluster's families, in the cluster's order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=IPv4;IPv6
	// +kubebuilder:validation:XValidation:rule="size(self) < 2 || self[0] != self[1]",message="ipFamilies has the same family twice; remove one of them"
	IPFamilies []corev1.IPFamily `json:"ipFamilies,omitempty"`
}

// NetworkPolicyMode selects whether the operator creates a NetworkPolicy.
type NetworkPolicyMode string

// Values of spec.networkPolicy.mode.
const (
	// NetworkPolicyManaged creates and maintains a NetworkPolicy for the Pods.
	NetworkPolicyManaged NetworkPolicyMode = "Managed"
	// NetworkPolicyNone creates no NetworkPolicy.
	NetworkPolicyNone NetworkPolicyMode = "None"
)

// NetworkPolicy restricts the clients that can reach the Pods.
//
// +kubebuilder:validation:XValidation:rule="!has(self.from) || !has(self.mode) || self.mode != 'None'",message="networkPolicy.from requires mode Managed, because mode None creates no NetworkPolicy; remove from, or set mode to Managed",fieldPath=".from"
type NetworkPolicy struct {
	// mode is Managed or None. Managed creates a NetworkPolicy for the Pods. None removes it, so
	// that only other NetworkPolicies restrict access to the Pods. Defaults to Managed.
	// +optional
	// +kubebuilder:validation:Enum=Managed;None
	Mode NetworkPolicyMode `json:"mode,omitempty"`

	// from are the peers that can reach the served ports, 1 to 16: Pods, namespaces, or
	// networks, as in a NetworkPolicy. The ports for the kubelet's probes and for the metrics of
	// monitoring stay open to all. Defaults to all peers.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	From []networkingv1.NetworkPolicyPeer `json:"from,omitempty"`
}
