package defaults

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// IsTLS reports whether nginx serves TLS on a port.
func IsTLS(port v1alpha2.Port) bool { return port.AppProtocol == "https" }

// PortListens returns the number that nginx listens on for a port.
func PortListens(port v1alpha2.Port) int32 { return ptr.Deref(port.TargetPort, port.Port) }

// TLSListens returns the number that nginx listens on with a certificate, or 0 without a port.
func TLSListens(tls v1alpha2.TLS) int32 {
	if tls.Port == nil {
		return 0
	}
	return ptr.Deref(tls.TargetPort, *tls.Port)
}

// ListenPorts returns the numbers that nginx listens on for the spec, plain HTTP and TLS.
func ListenPorts(spec *v1alpha2.NginxOperatorSpec) []int32 {
	var numbers []int32
	for _, port := range ServicePorts(spec) {
		numbers = append(numbers, port.Listens)
	}
	return numbers
}

// ServicePort is a port of the Service.
type ServicePort struct {
	// Name is the user's name, or "" for the port of a certificate.
	Name string
	// Number is the port of the Service, and Listens is the port that nginx listens on. NodePort is
	// the port on each node, or 0 if it is not set.
	Number, Listens, NodePort int32
	TLS                       bool
	// AppProtocol is the declared protocol, or "". There is no default, because load balancers act
	// on it: for http and https, Azure requires the answer 200 to GET /.
	AppProtocol string
}

// ServicePorts returns the named ports, then the ports of certificates. Certificates on the same
// port share the entry of the first one.
func ServicePorts(spec *v1alpha2.NginxOperatorSpec) []ServicePort {
	var ports []ServicePort
	for _, port := range Ports(spec) {
		ports = append(ports, ServicePort{
			Name: port.Name, Number: port.Port, Listens: PortListens(port), NodePort: ptr.Deref(port.NodePort, 0),
			TLS: IsTLS(port), AppProtocol: port.AppProtocol,
		})
	}

	shared := map[int32]bool{}
	for _, tls := range TLS(spec) {
		if tls.Port == nil || shared[*tls.Port] {
			continue
		}
		shared[*tls.Port] = true
		ports = append(ports, ServicePort{
			Number: *tls.Port, Listens: TLSListens(tls), NodePort: ptr.Deref(tls.NodePort, 0), TLS: true,
		})
	}

	return ports
}

// SameSpec reports whether two specs are equal, where an empty list of ports is not an absent one.
func SameSpec(a, b *v1alpha2.NginxOperatorSpec) bool {
	return (a.Ports == nil) == (b.Ports == nil) && equality.Semantic.DeepEqual(a, b)
}
