package v1alpha2

// This file has how operands are reached: on which ports, through which Service, and by whom.

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// Port is a port of the Service, for plain HTTP unless its appProtocol is https.
type Port struct {
	// name of the port in the Service: a DNS label of at most 15 characters with at least one letter (RFC 6335).
	// The names health and those that begin with tls- are the operator's.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.matches('[a-z]') && !self.contains('--')",message="a port's name must be lower-case letters, digits and single hyphens, with at least one letter and no hyphen at either end, for example http"
	// +kubebuilder:validation:XValidation:rule="self != 'health' && !self.startsWith('tls-')",message="the port names health and tls-... are used by the operator; choose another name"
	Name string `json:"name"`

	// port is the number that clients of the Service ask for, 1 to 65535.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// targetPort is the number on which nginx listens, 1 to 65535. Defaults to port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	TargetPort *int32 `json:"targetPort,omitempty"`

	// nodePort is the number on each node, 1 to 65535, for a Service of type NodePort or LoadBalancer. It has to be in the
	// cluster's range (most often 30000 to 32767) and free. Defaults to one that the cluster chooses.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	NodePort *int32 `json:"nodePort,omitempty"`

	// appProtocol tells load balancers, gateways and meshes what the port speaks: http, https, kubernetes.io/h2c (HTTP/2 without
	// TLS), kubernetes.io/ws (WebSocket), or a name with a prefix of theirs, at most 317 characters. With https nginx speaks TLS on
	// the port: with the first certificate of tls, or as config says. Defaults to http.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="appProtocol is a name such as http, or one with a domain before it such as kubernetes.io/ws; each is letters, digits, hyphens, dots and underscores, and begins and ends with a letter or digit"
	AppProtocol string `json:"appProtocol,omitempty"`

	// protocol of the port. Defaults to TCP, the only one that there is for HTTP/1.1 and HTTP/2.
	// +optional
	// +default="TCP"
	// +kubebuilder:validation:Enum=TCP
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// TLS is a certificate and the port that is served with it.
//
// +kubebuilder:validation:XValidation:rule="has(self.port) || !has(self.targetPort) && !has(self.nodePort)",message="targetPort and nodePort need port beside them; set port, or remove them"
type TLS struct {
	// secretName names a Secret of type kubernetes.io/tls in the object's namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="secretName must be lower-case letters, digits, hyphens and dots, and begin and end with a letter or digit, as names of objects do"
	SecretName string `json:"secretName"`

	// port is the number that clients of the Service ask for to speak TLS with this certificate, 1 to 65535. Without config,
	// the first certificate defaults to 8443. A certificate without a port is only mounted, for config to use. With config, a
	// port given here has to be listened on there, and several certificates may have the same: server blocks choose by server_name.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// targetPort is the number on which nginx listens, 1 to 65535. Defaults to port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	TargetPort *int32 `json:"targetPort,omitempty"`

	// nodePort is the number on each node, 1 to 65535, for a Service of type NodePort or LoadBalancer. It has to be in the
	// cluster's range (most often 30000 to 32767) and free. Defaults to one that the cluster chooses. Of several certificates on a
	// port, the first says it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	NodePort *int32 `json:"nodePort,omitempty"`
}

// Service says how the Service in front of the operands looks.
//
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancerClass) || self.type == 'LoadBalancer'",message="loadBalancerClass needs type LoadBalancer; set the type or remove loadBalancerClass",fieldPath=".loadBalancerClass"
// +kubebuilder:validation:XValidation:rule="!has(self.externalTrafficPolicy) || self.type != 'ClusterIP'",message="externalTrafficPolicy needs type NodePort or LoadBalancer; set the type or remove externalTrafficPolicy",fieldPath=".externalTrafficPolicy"
// +kubebuilder:validation:XValidation:rule=`self.type != 'LoadBalancer' || oldSelf.type != 'LoadBalancer' || (has(self.loadBalancerClass) ? self.loadBalancerClass : "") == (has(oldSelf.loadBalancerClass) ? oldSelf.loadBalancerClass : "")`,message="loadBalancerClass cannot be changed while type is LoadBalancer (Kubernetes forbids it); set type ClusterIP first, then type and class again",fieldPath=".loadBalancerClass"
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancerSourceRanges) || self.type == 'LoadBalancer'",message="loadBalancerSourceRanges needs type LoadBalancer; set the type or remove loadBalancerSourceRanges",fieldPath=".loadBalancerSourceRanges"
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilies) || (size(self.ipFamilies) == 2) == (has(self.ipFamilyPolicy) && self.ipFamilyPolicy != 'SingleStack')",message="ipFamilies takes two families with ipFamilyPolicy PreferDualStack or RequireDualStack, and one with SingleStack; correct one of the two, or remove ipFamilies",fieldPath=".ipFamilies"
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilies) || !has(oldSelf.ipFamilies) || self.ipFamilies[0] == oldSelf.ipFamilies[0]",message="the first of ipFamilies cannot be changed (Kubernetes forbids it); keep it first, or create another NginxOperator",fieldPath=".ipFamilies"
type Service struct {
	// type is ClusterIP, NodePort or LoadBalancer. Defaults to ClusterIP.
	// +optional
	// +default="ClusterIP"
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	Type corev1.ServiceType `json:"type,omitempty"`

	// annotations of the Service, at most 64, for example those that configure a cloud's load balancer.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('operator.example.com/'))",message="the annotations that begin with operator.example.com/ are the operator's; remove them, or use a prefix of your own"
	Annotations map[string]string `json:"annotations,omitempty"`

	// labels of the Service, at most 64, beside those of the operator.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('operator.example.com/') && !(k in ['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/version', 'app.kubernetes.io/component', 'app.kubernetes.io/part-of', 'app.kubernetes.io/managed-by']))",message="the labels app.kubernetes.io/name, instance, version, component, part-of and managed-by and those that begin with operator.example.com/ are the operator's; remove them, or use a key with a prefix of your own"
	Labels map[string]string `json:"labels,omitempty"`

	// loadBalancerClass says which load balancer implementation serves a Service of type LoadBalancer. Defaults to the
	// cluster's. It cannot be changed while the type is LoadBalancer.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty"`

	// externalTrafficPolicy is Cluster or Local, for the types NodePort and LoadBalancer. Local keeps the client's address
	// and goes only to nodes that run an operand. Defaults to Cluster.
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`

	// internalTrafficPolicy is Cluster or Local. Local goes from each client inside the cluster only to operands on its own
	// node, and nowhere where there is none. Defaults to Cluster.
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	InternalTrafficPolicy *corev1.ServiceInternalTrafficPolicy `json:"internalTrafficPolicy,omitempty"`

	// sessionAffinity is None or ClientIP. ClientIP sends a client to the same operand for three hours after its last
	// connection. Defaults to None.
	// +optional
	// +kubebuilder:validation:Enum=None;ClientIP
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// loadBalancerSourceRanges are the networks, in CIDR notation, from which the load balancer lets clients in, at most
	// 64, for type LoadBalancer. Defaults to all. The load balancer has to support it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="self.all(range, range.matches('^[0-9a-fA-F:.]{2,45}/[0-9]{1,3}$'))",message="each of loadBalancerSourceRanges must be a network in CIDR notation; write for example 192.0.2.0/24, or 192.0.2.7/32 for one address"
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`

	// ipFamilyPolicy is SingleStack, PreferDualStack (both families where the cluster has both) or RequireDualStack.
	// Defaults to SingleStack.
	// +optional
	// +kubebuilder:validation:Enum=SingleStack;PreferDualStack;RequireDualStack
	IPFamilyPolicy *corev1.IPFamilyPolicy `json:"ipFamilyPolicy,omitempty"`

	// ipFamilies are the address families of the Service, IPv4 and IPv6, the first for clients that know only one. Defaults
	// to those of the cluster, in its order. The first cannot be changed once the Service exists.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=IPv4;IPv6
	// +kubebuilder:validation:XValidation:rule="size(self) < 2 || self[0] != self[1]",message="ipFamilies has the same family twice; remove one of them"
	IPFamilies []corev1.IPFamily `json:"ipFamilies,omitempty"`
}

// NetworkPolicyMode says whether there is a NetworkPolicy.
type NetworkPolicyMode string

// Modes of the NetworkPolicy.
const (
	// NetworkPolicyManaged: the operator keeps a NetworkPolicy for the operands.
	NetworkPolicyManaged NetworkPolicyMode = "Managed"
	// NetworkPolicyNone: there is none of the operator's.
	NetworkPolicyNone NetworkPolicyMode = "None"
)

// NetworkPolicy says who may reach the operands.
//
// +kubebuilder:validation:XValidation:rule="!has(self.from) || !has(self.mode) || self.mode != 'None'",message="networkPolicy.from needs mode Managed; with None there is no NetworkPolicy that could hold it, so remove one of the two",fieldPath=".from"
type NetworkPolicy struct {
	// mode is Managed or None. With None the operator removes its NetworkPolicy, and leaves it to policies of others, or to
	// none, who reaches the operands. Defaults to Managed.
	// +optional
	// +kubebuilder:validation:Enum=Managed;None
	Mode NetworkPolicyMode `json:"mode,omitempty"`

	// from are the peers that may reach the served ports, 1 to 16, as in a NetworkPolicy: Pods, namespaces or networks.
	// Defaults to anybody. The port of the kubelet's probes stays open to all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	From []networkingv1.NetworkPolicyPeer `json:"from,omitempty"`
}
