package status

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
)

// maxAddresses is the schema's limit of status.addresses.
const maxAddresses = 16

// addressesOf returns the addresses of the instance outside of the cluster: those of the Ingress,
// those of the load balancer, and the node ports.
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

// servedPort returns the first port of the Service. The names and protocols of its ports show which
// have TLS.
func servedPort(service []corev1.ServicePort) defaults.ServicePort {
	if len(service) == 0 {
		return defaults.ServicePort{}
	}
	return defaults.ServicePort{Number: service[0].Port, TLS: operand.HasTLS(service[0])}
}

// urlOf returns the URL of a port of the Service at a host. It omits a default port.
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
