package nginxoperator

import (
	"context"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// hasIngress reports whether there is an Ingress in front of the Service.
func hasIngress(spec *v1alpha2.NginxOperatorSpec) bool {
	return spec.Expose != nil && spec.Expose.Ingress != nil
}

// desiredIngress returns the way in from outside of the cluster. It asks for a port by its number, which a rename does not change.
func desiredIngress(object *v1alpha2.NginxOperator, in inputs) *networkingv1.Ingress {
	form := object.Spec.Expose.Ingress
	ingress := &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "Ingress"},
		ObjectMeta: childMeta(object, in),
		Spec:       networkingv1.IngressSpec{IngressClassName: form.ClassName},
	}
	ingress.Annotations = withUsers(form.Annotations, nil)
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: object.Name, Port: networkingv1.ServiceBackendPort{Number: backendPort(&object.Spec, in.running)},
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

// backendPort returns the number of the port that the Ingress or the HTTPRoute asks for: the first that is declared, one for plain HTTP
// where there is such. While no Pod that is ready serves it, it stays the one that clients are sent to now, if such a Pod serves that:
// they are not sent where nobody answers.
func backendPort(spec *v1alpha2.NginxOperatorSpec, now running) int32 {
	ports := declaredPorts(spec, now)
	first := ports[max(0, slices.IndexFunc(ports, func(port served) bool { return !port.tls }))].number
	if !now.ready.Has(first) && now.ready.Has(now.exposed) && serves(now.service, now.exposed) {
		return now.exposed
	}
	return first
}

// liveIngress returns the Ingress that belongs to the object, an empty one where there is none.
func (r *Reconciler) liveIngress(ctx context.Context, object *v1alpha2.NginxOperator) (*networkingv1.Ingress, error) {
	ingress := &networkingv1.Ingress{}
	if found, err := r.live(ctx, object, "Ingress", ingress); !found {
		return &networkingv1.Ingress{}, err
	}
	return ingress, nil
}

// ingressAddresses returns the IP addresses and names of the load balancers under which clients reach the Ingress.
func ingressAddresses(ingress *networkingv1.Ingress) []string {
	var out []string
	for _, point := range ingress.Status.LoadBalancer.Ingress {
		for _, address := range []string{point.IP, point.Hostname} {
			if address != "" {
				out = append(out, address)
			}
		}
	}
	return out
}

// exposedURL returns the URL of the first host that is no wildcard, once the Ingress has an address or a Gateway accepts the HTTPRoute.
func exposedURL(object *v1alpha2.NginxOperator, state observed) (string, bool) {
	if hasHTTPRoute(&object.Spec) {
		return routeURL(object, state.route)
	}
	if !hasIngress(&object.Spec) || len(state.addresses) == 0 {
		return "", false
	}
	for _, host := range object.Spec.Expose.Ingress.Hosts {
		if strings.HasPrefix(host.Host, "*") {
			continue
		}
		scheme := "http"
		if host.TLSSecretName != "" {
			scheme = "https"
		}
		return scheme + "://" + host.Host + strings.TrimSuffix(defaults.IngressPaths(host)[0], "/"), true
	}
	return "", false
}
