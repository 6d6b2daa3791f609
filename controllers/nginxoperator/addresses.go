package nginxoperator

import (
	"cmp"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// maxAddresses is what the schema allows.
const maxAddresses = 16

// addressesOf returns where the instance is reached from outside of the cluster: those of the Ingress, those of the load balancer, then
// the node ports.
func addressesOf(state observed) []v1alpha2.Address {
	var out []v1alpha2.Address
	for _, value := range state.addresses {
		out = append(out, v1alpha2.Address{Type: v1alpha2.AddressIngress, Value: value})
	}
	for _, at := range state.balancer {
		switch {
		case at.IP != "":
			out = append(out, v1alpha2.Address{Type: v1alpha2.AddressLoadBalancerIP, Value: at.IP})
		case at.Hostname != "":
			out = append(out, v1alpha2.Address{Type: v1alpha2.AddressLoadBalancerHostname, Value: at.Hostname})
		}
	}
	for _, port := range state.service {
		if port.NodePort != 0 {
			value := strconv.FormatInt(int64(port.NodePort), 10)
			out = append(out, v1alpha2.Address{Type: v1alpha2.AddressNodePort, Value: value, Port: port.Port})
		}
	}
	return out[:min(len(out), maxAddresses)]
}

// instanceURL returns the URL of the instance at the best of its addresses, inside the cluster where it has none outside. It is false
// while the Service does not serve the port that stands for the instance.
func instanceURL(object *v1alpha2.NginxOperator, state observed) (string, bool) {
	if url, found := exposedURL(object, state); found {
		return url, true
	}
	ports := defaults.ServicePorts(&object.Spec)
	if len(ports) == 0 || !serves(state.service, ports[0].Number) {
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

// urlOf returns the URL of a port of the Service at a host.
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

// sameIngress reports whether two Services have the same addresses of a load balancer.
func sameIngress(a, b *corev1.Service) bool {
	before, after := a.Status.LoadBalancer.Ingress, b.Status.LoadBalancer.Ingress
	if len(before) != len(after) {
		return false
	}
	for i := range before {
		if cmp.Or(before[i].IP, before[i].Hostname) != cmp.Or(after[i].IP, after[i].Hostname) {
			return false
		}
	}
	return true
}
