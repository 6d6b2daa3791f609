package status

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
)

// maxAddresses is the schema's limit of status.addresses.
const maxAddresses = 16

// addressesOf returns the addresses of the Ingress and load balancer, and the node ports.
func addressesOf(state live.Observed) []v1alpha2.Address {
	var out []v1alpha2.Address
	for _, value := range state.Addresses {
		out = append(out, v1alpha2.Address{Type: v1alpha2.AddressIngress, Value: value})
	}

	for _, at := range state.Balancer {
		switch {
		case at.IP != "":
			out = append(out, v1alpha2.Address{Type: v1alpha2.AddressLoadBalancerIP, Value: at.IP})
		case at.Hostname != "":
			out = append(out, v1alpha2.Address{Type: v1alpha2.AddressLoadBalancerHostname, Value: at.Hostname})
		}
	}

	for _, port := range state.Service {
		if port.NodePort != 0 {
			value := strconv.FormatInt(int64(port.NodePort), 10)
			out = append(out, v1alpha2.Address{Type: v1alpha2.AddressNodePort, Value: value, Port: port.Port})
		}
	}

	return out[:min(len(out), maxAddresses)]
}

// instanceURL returns the URL of the instance at its best address, or inside the cluster if it has
// no other address. It is the earlier one while the entrance is not that of the spec and an Ingress
// or HTTPRoute exists, and while the Service does not serve the first declared port.
func instanceURL(object *v1alpha2.NginxOperator, applied *revision.Rendering, state live.Observed) string {
	port := servedPort(state.Service)
	if applied.Entrance != nil && applied.Entrance.Object != nil {
		declared := applied.Entrance.Object
		if url, found := exposedURL(declared, state); found {
			return url
		}

		ports := defaults.ServicePorts(&declared.Spec)
		if len(ports) == 0 || !operand.Serves(state.Service, ports[0].Number) {
			return object.Status.URL
		}

		port = ports[0]
	} else if object.Status.URL != "" && (len(state.Addresses) > 0 || state.Route != nil && state.Route.Name != "") {
		return object.Status.URL
	}

	host := fmt.Sprintf("%s.%s.svc", object.Name, object.Namespace)
	for _, address := range addressesOf(state) {
		if address.Type == v1alpha2.AddressLoadBalancerIP || address.Type == v1alpha2.AddressLoadBalancerHostname {
			host = address.Value
			break
		}
	}

	return urlOf(host, port)
}

// exposedURL returns the URL of the first host that is not a wildcard, once the Ingress has an
// address or a Gateway has accepted the HTTPRoute.
func exposedURL(object *v1alpha2.NginxOperator, state live.Observed) (string, bool) {
	if operand.HasHTTPRoute(&object.Spec) {
		return routeURL(object, state.Route)
	}
	if !operand.HasIngress(&object.Spec) || len(state.Addresses) == 0 {
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

func servedPort(service []corev1.ServicePort) defaults.ServicePort {
	if len(service) == 0 {
		return defaults.ServicePort{}
	}
	return defaults.ServicePort{Number: service[0].Port, TLS: operand.HasTLS(service[0])}
}

func urlOf(host string, port defaults.ServicePort) string {
	scheme, usual := "http", int32(80)
	if port.TLS {
		scheme, usual = "https", 443
	}

	address := net.JoinHostPort(host, strconv.FormatInt(int64(port.Number), 10))
	if port.Number == usual {
		address = host
		if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
			address = "[" + host + "]"
		}
	}

	return scheme + "://" + address
}

func routeFailures(applied *revision.Rendering, route *gatewayv1.HTTPRoute) []failure.Failure {
	if applied == nil {
		return nil
	}

	declared := operand.ChildOf[*gatewayv1.HTTPRoute](applied.Children)
	if declared == nil {
		return nil
	}

	var out []failure.Failure
	for i, reference := range declared.Spec.ParentRefs {
		parent := v1alpha2.GatewayReference{
			Name: string(reference.Name), Namespace: string(ptr.Deref(reference.Namespace, "")),
			SectionName: string(ptr.Deref(reference.SectionName, "")), Port: reference.Port,
		}
		name := cmp.Or(parent.Namespace, declared.Namespace) + "/" + parent.Name
		for _, said := range conditionsFor(parent, declared.Namespace, route) {
			for _, about := range []struct{ condition, what string }{
				{string(gatewayv1.RouteConditionAccepted), "does not accept the HTTPRoute"},
				{string(gatewayv1.RouteConditionResolvedRefs), "cannot resolve the references of the HTTPRoute"},
			} {
				found := meta.FindStatusCondition(said, about.condition)
				if found == nil || found.Status != metav1.ConditionFalse || found.Reason == string(gatewayv1.RouteReasonPending) {
					continue
				}
				out = append(out, failure.Failure{Reason: v1alpha2.ReasonRouteNotAccepted, Message: fmt.Sprintf("%s: Gateway %q %s (%s): %s",
					operand.HTTPRouteKind.At.Child("parentRefs").Index(i), name, about.what, found.Reason, found.Message)})
			}
		}
	}

	return out
}

func conditionsFor(parent v1alpha2.GatewayReference, namespace string, route *gatewayv1.HTTPRoute) [][]metav1.Condition {
	if route == nil {
		return nil
	}

	var out [][]metav1.Condition
	for _, status := range route.Status.Parents {
		of := status.ParentRef
		at := string(ptr.Deref(of.Namespace, gatewayv1.Namespace(namespace)))
		if string(of.Name) != parent.Name || at != cmp.Or(parent.Namespace, namespace) ||
			string(ptr.Deref(of.SectionName, "")) != parent.SectionName || ptr.Deref(of.Port, 0) != ptr.Deref(parent.Port, 0) {
			continue
		}

		out = append(out, operand.CurrentConditions(route, status.Conditions))
	}

	return out
}

// routeURL returns the URL of the first host that is not a wildcard, once a Gateway has accepted
// the HTTPRoute. Gateways are not read, so only a declared port 443 means TLS.
func routeURL(object *v1alpha2.NginxOperator, route *gatewayv1.HTTPRoute) (string, bool) {
	form := object.Spec.Expose.HTTPRoute
	for _, parent := range form.ParentRefs {
		for _, said := range conditionsFor(parent, object.Namespace, route) {
			if !meta.IsStatusConditionTrue(said, string(gatewayv1.RouteConditionAccepted)) {
				continue
			}
			for _, name := range form.Hostnames {
				if port := ptr.Deref(parent.Port, 80); !strings.HasPrefix(name, "*") {
					return urlOf(name, defaults.ServicePort{Number: port, TLS: port == 443}), true
				}
			}
		}
	}

	return "", false
}

// MissingFailures returns a failure for each child of a declaration whose kind is not installed.
func MissingFailures(applied *revision.Rendering) []failure.Failure {
	if applied == nil {
		return nil
	}

	var out []failure.Failure
	for _, child := range applied.Unrendered() {
		missing := applied.Missing[child.Kind]
		message := fmt.Sprintf("%s: %s, so there is no %s. %s", child.At, missing, child.Kind, child.Remedy)
		out = append(out, failure.Failure{Reason: v1alpha2.ReasonAPIMissing, Message: message})
	}

	return out
}
