package operand

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

type ingressRule = networkingv1.NetworkPolicyIngressRule

// desiredNetworkPolicy returns the NetworkPolicy. It admits the declared peers to the ports of the
// Service, and any source to the ports for probes and metrics: no peer selects the node address of
// the kubelet, and the location of Prometheus is unknown. All ports are numbers, because
// OVN-Kubernetes takes the name of a port for the number 0.
func desiredNetworkPolicy(object *v1alpha2.NginxOperator, in Inputs) *networkingv1.NetworkPolicy {
	policy := assets.NetworkPolicy()
	policy.ObjectMeta = ObjectMeta(object, in)
	policy.Spec.PodSelector = metav1.LabelSelector{MatchLabels: wellknown.Selector(object.Name)}
	serving, forAll := sets.New[int32](), sets.New(defaults.HealthPort(&object.Spec))
	for _, port := range defaults.ServicePorts(&object.Spec) {
		serving.Insert(port.Listens)
	}
	forAll.Insert(defaults.MetricsPort(&object.Spec), defaults.RequestMetricsPort(&object.Spec))
	forAll.Delete(0)

	var from []networkingv1.NetworkPolicyPeer
	if object.Spec.NetworkPolicy != nil {
		from = object.Spec.NetworkPolicy.From
	}

	policy.Spec.Ingress = admit(admit(nil, serving, from), forAll, nil)
	return policy
}

// rulesOf returns the rules of the entrance's NetworkPolicy for the Pods that run, and these ports
// of the Service. While Pods with different numbers run, the rules have the numbers of all of them,
// but none of Pods that only have the labels. Numbers that only new Pods serve have their peers.
func rulesOf(entrance, pods parts, ports []corev1.ServicePort, now Running) []ingressRule {
	declared, coming := sets.New[int32](), sets.New[int32]()
	for _, port := range ports {
		if Serves(pods.service.Spec.Ports, port.Port) && !Serves(entrance.service.Spec.Ports, port.Port) {
			coming.Insert(port.Port)
		} else {
			declared.Insert(port.Port)
		}
	}

	serving := listening(declared, slices.Concat(entrance.containerPorts(), now.own))
	added := listening(coming, slices.Concat(pods.containerPorts(), now.own)).Difference(serving)
	forAll := sets.New(slices.Concat(entrance.metrics(), pods.metrics())...)
	for _, port := range slices.Concat(now.own, entrance.containerPorts(), pods.containerPorts()) {
		if port.Name == HealthPort {
			forAll.Insert(port.Listens)
		}
	}

	before := entrance.served().Difference(serving).Difference(forAll)
	rules := withoutNumbers(entrance.policy.DeepCopy().Spec.Ingress, func(_ ingressRule, number int32) bool {
		return before.Has(number)
	})

	rules = admit(rules, serving, peersOf(entrance))
	rules = admit(rules, added, peersOf(pods))
	return admit(rules, forAll, nil)
}

// served returns the numbers on which the Pods of a declaration listen for ports of its Service.
func (p parts) served() sets.Set[int32] {
	numbers, _ := numbersAndNames(p.service.Spec.Ports)
	return listening(numbers, p.containerPorts())
}

// metrics returns the numbers on which the operator's sidecars of a declaration serve metrics.
func (p parts) metrics() (numbers []int32) {
	for _, container := range p.deployment.Spec.Template.Spec.InitContainers {
		if container.Name == wellknown.ExporterContainer || container.Name == wellknown.RequestMetricsContainer {
			for _, port := range container.Ports {
				numbers = append(numbers, port.ContainerPort)
			}
		}
	}
	return numbers
}

// peersOf returns the peers that a declaration admits to the ports of its Service, or nil for all.
func peersOf(declaration parts) []networkingv1.NetworkPolicyPeer {
	if declaration.policy == nil {
		return nil
	}

	served := declaration.served()
	for _, rule := range declaration.policy.Spec.Ingress {
		isServed := func(port networkingv1.NetworkPolicyPort) bool { return served.Has(numberOf(port)) }
		if slices.ContainsFunc(rule.Ports, isServed) {
			return rule.From
		}
	}

	return nil
}

// listening returns the numbers on which Pods listen for ports of the Service.
func listening(numbers sets.Set[int32], containers []ContainerPort) sets.Set[int32] {
	listens := sets.New[int32]()
	for _, port := range containers {
		if port.Name != HealthPort && numbers.Has(port.Number) {
			listens.Insert(port.Listens)
		}
	}
	return listens
}

// admit returns rules that admit peers, or all for nil, to these numbers. A number that other peers
// have stays theirs: some Pods can serve it, and others have it for their probes. The kubelet
// reaches it in any case, because a Pod always admits its own node. There is no rule without
// numbers, because it would open all of them.
func admit(rules []ingressRule, numbers sets.Set[int32], from []networkingv1.NetworkPolicyPeer) []ingressRule {
	if len(from) > 0 {
		rules = withoutNumbers(rules, func(rule ingressRule, number int32) bool {
			return len(rule.From) == 0 && numbers.Has(number)
		})
	}

	missing, at := numbers.Clone(), -1
	for i, rule := range rules {
		for _, port := range rule.Ports {
			missing.Delete(numberOf(port))
		}
		if at < 0 && len(rule.Ports) > 0 && equality.Semantic.DeepEqual(rule.From, from) {
			at = i
		}
	}

	if len(missing) == 0 {
		return rules
	}

	if at < 0 {
		at = len(rules)
		isForAll := func(rule ingressRule) bool { return len(rule.From) == 0 }
		if first := slices.IndexFunc(rules, isForAll); first >= 0 && len(from) > 0 {
			at = first
		}

		rules = slices.Insert(rules, at, ingressRule{From: from})
	}

	for number := range missing {
		rules[at].Ports = append(rules[at].Ports, networkingv1.NetworkPolicyPort{
			Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(number)),
		})
	}

	slices.SortFunc(rules[at].Ports, func(a, b networkingv1.NetworkPolicyPort) int { return cmp.Compare(numberOf(a), numberOf(b)) })
	return rules
}

// withoutNumbers returns rules without some numbers, and without the rules that have no other.
func withoutNumbers(rules []ingressRule, goes func(ingressRule, int32) bool) (left []ingressRule) {
	for _, rule := range rules {
		had := len(rule.Ports)
		rule.Ports = slices.DeleteFunc(rule.Ports, func(port networkingv1.NetworkPolicyPort) bool { return goes(rule, numberOf(port)) })
		if had == 0 || len(rule.Ports) > 0 {
			left = append(left, rule)
		}
	}
	return left
}

// numberOf returns the number of a port of a rule, or 0 if it has none.
func numberOf(port networkingv1.NetworkPolicyPort) int32 {
	return ptr.Deref(port.Port, intstr.IntOrString{}).IntVal
}
