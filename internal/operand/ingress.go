package operand

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// HasIngress reports whether the spec declares an Ingress.
func HasIngress(spec *v1alpha2.NginxOperatorSpec) bool {
	return spec.Expose != nil && spec.Expose.Ingress != nil
}

// desiredIngress returns the Ingress. It references the port by its number, which a rename does not
// change.
func desiredIngress(object *v1alpha2.NginxOperator, in Inputs) *networkingv1.Ingress {
	form := object.Spec.Expose.Ingress
	ingress := &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "Ingress"},
		ObjectMeta: ObjectMeta(object, in),
		Spec:       networkingv1.IngressSpec{IngressClassName: form.ClassName},
	}

	ingress.Annotations = withUsers(form.Annotations, nil)
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: object.Name, Port: networkingv1.ServiceBackendPort{Number: mainPort(&object.Spec)},
	}}

	for _, host := range form.Hosts {
		rule := &networkingv1.HTTPIngressRuleValue{}
		for _, path := range defaults.IngressPaths(host) {
			rule.Paths = append(rule.Paths, networkingv1.HTTPIngressPath{
				Path: path, PathType: ptr.To(networkingv1.PathTypePrefix), Backend: backend,
			})
		}

		ingress.Spec.Rules = append(ingress.Spec.Rules, networkingv1.IngressRule{
			Host: host.Host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: rule},
		})
		if host.TLSSecretName != "" {
			ingress.Spec.TLS = append(ingress.Spec.TLS, networkingv1.IngressTLS{Hosts: []string{host.Host}, SecretName: host.TLSSecretName})
		}
	}

	return ingress
}
