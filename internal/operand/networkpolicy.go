package operand

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

// desiredNetworkPolicy returns the NetworkPolicy. It admits the declared peers to the served ports,
// and any source to the ports for probes and metrics: no peer selects the node address of the
// kubelet, and the location of Prometheus is unknown.
func desiredNetworkPolicy(object *v1alpha2.NginxOperator, in Inputs) *networkingv1.NetworkPolicy {
	policy := assets.NetworkPolicy()
	policy.ObjectMeta = ObjectMeta(object, in)
	policy.Spec.PodSelector = metav1.LabelSelector{MatchLabels: wellknown.Selector(object.Name)}
	var serving []networkingv1.NetworkPolicyPort
	for _, port := range ServedPorts(&object.Spec, in.Running) {
		serving = append(serving, namedPort(port.target))
	}
	forAll := []networkingv1.NetworkPolicyPort{namedPort(portHealth)}
	if port := defaults.MetricsPort(&object.Spec); port != 0 {
		// Some network plugins do not resolve the names of a sidecar's ports.
		forAll = append(forAll, networkingv1.NetworkPolicyPort{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(port))})
	}
	if declared := object.Spec.NetworkPolicy; declared != nil && len(declared.From) > 0 {
		policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{
			{Ports: serving, From: declared.From}, {Ports: forAll},
		}
		return policy
	}
	policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{Ports: append(serving, forAll...)}}
	return policy
}

// namedPort returns a port of a policy for a name of a container port.
func namedPort(name string) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromString(name))}
}
