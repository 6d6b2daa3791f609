package status

import (
	"fmt"
	"net"
	"strconv"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
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
// no other address. It is false while the Service does not serve the first declared port.
func instanceURL(object *v1alpha2.NginxOperator, state live.Observed) (string, bool) {
	if url, found := exposedURL(object, state); found {
		return url, true
	}
	ports := defaults.ServicePorts(&object.Spec)
	if len(ports) == 0 || !operand.Serves(state.Service, ports[0].Number) {
		return "", false
	}
	host := fmt.Sprintf("%s.%s.svc", object.Name, object.Namespace)
	for _, address := range addressesOf(state) {
		if address.Type == v1alpha2.AddressLoadBalancerIP || address.Type == v1alpha2.AddressLoadBalancerHostname {
			host = address.Value
			break
		}
	}
	return urlOf(host, ports[0]), true
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
