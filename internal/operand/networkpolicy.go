package operand

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

// desiredNetworkPolicy returns the NetworkPolicy. It admits the declared peers to the served ports,
// and any source to the ports for probes and metrics: no peer selects the node address of the
// kubelet, and the location of Prometheus is unknown. All ports are numbers, because OVN-Kubernetes
// takes the name of a port for the number 0. While Pods with different numbers run, the
// NetworkPolicy has the numbers of all of them, but none of Pods that only have the labels.
func desiredNetworkPolicy(object *v1alpha2.NginxOperator, in Inputs) *networkingv1.NetworkPolicy {
	policy := assets.NetworkPolicy()
	policy.ObjectMeta = ObjectMeta(object, in)
	policy.Spec.PodSelector = metav1.LabelSelector{MatchLabels: wellknown.Selector(object.Name)}

	serving := listening(ServedPorts(&object.Spec, in.Running), in.Running)
	forAll := in.Running.health().Insert(defaults.HealthPort(&object.Spec))
	if port := defaults.MetricsPort(&object.Spec); port != 0 {
		forAll.Insert(port)
	}

	if declared := object.Spec.NetworkPolicy; declared != nil && len(declared.From) > 0 {
		// A number can be served by some Pods, and have the probes of others. The kubelet reaches it
		// in any case: a Pod always admits its own node.
		policy.Spec.Ingress = append(ruleOf(serving, declared.From), ruleOf(forAll.Difference(serving), nil)...)
		return policy
	}
	policy.Spec.Ingress = ruleOf(serving.Union(forAll), nil)
	return policy
}

// listening returns the numbers on which new Pods and running Pods listen for ports of the Service.
func listening(ports []Port, now Running) sets.Set[int32] {
	out, served := sets.New[int32](), sets.New[int32]()
	for _, port := range ports {
		served.Insert(port.Number)
		if port.listens != 0 {
			out.Insert(port.listens)
		}
	}
	for _, port := range now.own {
		if port.Name != portHealth && served.Has(port.Number) {
			out.Insert(port.Listens)
		}
	}
	return out
}

// ruleOf returns a rule for port numbers, or none without numbers: a rule without ports opens all
// of them.
func ruleOf(numbers sets.Set[int32], from []networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyIngressRule {
	if len(numbers) == 0 {
		return nil
	}
	rule := networkingv1.NetworkPolicyIngressRule{From: from}
	for _, number := range sets.List(numbers) {
		rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{
			Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(number)),
		})
	}
	return []networkingv1.NetworkPolicyIngressRule{rule}
}
