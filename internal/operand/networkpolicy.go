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
// NetworkPolicy has the numbers of all of them, but none of Pods that only have the labels. Numbers
// that only new Pods serve have the peers of these Pods.
func desiredNetworkPolicy(object *v1alpha2.NginxOperator, in Inputs) *networkingv1.NetworkPolicy {
	policy := assets.NetworkPolicy()
	policy.ObjectMeta = ObjectMeta(object, in)
	policy.Spec.PodSelector = metav1.LabelSelector{MatchLabels: wellknown.Selector(object.Name)}

	entrance, coming := portsByDeclaration(&object.Spec, in)
	serving := listening(entrance, in.Running)
	added := listening(coming, in.Running).Difference(serving)
	forAll := in.Running.health()
	for _, spec := range []*v1alpha2.NginxOperatorSpec{&object.Spec, in.Pods} {
		if spec == nil {
			continue
		}
		forAll.Insert(defaults.HealthPort(spec))
		if port := defaults.MetricsPort(spec); port != 0 {
			forAll.Insert(port)
		}
	}

	// A number can be served by some Pods, and have the probes of others. The kubelet reaches it in
	// any case: a Pod always admits its own node.
	for _, one := range []struct {
		numbers sets.Set[int32]
		from    []networkingv1.NetworkPolicyPeer
	}{{serving, peersOf(&object.Spec)}, {added, peersOf(in.Pods)}} {
		if len(one.from) == 0 {
			forAll = forAll.Union(one.numbers)
			continue
		}
		policy.Spec.Ingress = append(policy.Spec.Ingress, ruleOf(one.numbers, one.from)...)
		forAll = forAll.Difference(one.numbers)
	}
	policy.Spec.Ingress = append(policy.Spec.Ingress, ruleOf(forAll, nil)...)
	return policy
}

// peersOf returns the declared peers, or nil for all.
func peersOf(spec *v1alpha2.NginxOperatorSpec) []networkingv1.NetworkPolicyPeer {
	if spec == nil || spec.NetworkPolicy == nil {
		return nil
	}
	return spec.NetworkPolicy.From
}

// portsByDeclaration returns the ports of the Service: those of the entrance, and those that only the
// new Pods declare.
func portsByDeclaration(spec *v1alpha2.NginxOperatorSpec, in Inputs) (entrance, coming []Port) {
	of := sets.New[int32]()
	if in.Pods != nil {
		for _, port := range defaults.ServicePorts(in.Pods) {
			of.Insert(port.Number)
		}
	}
	for _, port := range defaults.ServicePorts(spec) {
		of.Delete(port.Number)
	}
	for _, port := range ServedPorts(spec, in) {
		if of.Has(port.Number) {
			coming = append(coming, port)
		} else {
			entrance = append(entrance, port)
		}
	}
	return entrance, coming
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
