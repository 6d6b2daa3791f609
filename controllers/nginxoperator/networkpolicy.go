package nginxoperator

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/wellknown"
)

func desiredNetworkPolicy(object *v1alpha2.NginxOperator, in inputs) *networkingv1.NetworkPolicy {
	policy := assets.NetworkPolicy()
	policy.ObjectMeta = childMeta(object, in)
	policy.Spec.PodSelector = metav1.LabelSelector{MatchLabels: wellknown.Selector(object.Name)}
	var ports []networkingv1.NetworkPolicyPort
	allow := func(name string) {
		ports = append(ports, networkingv1.NetworkPolicyPort{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromString(name))})
	}
	for _, port := range servedPorts(&object.Spec, in.running) {
		allow(port.target)
	}
	allow(portHealth)
	policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{Ports: ports}}
	return policy
}
