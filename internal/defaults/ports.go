package defaults

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// Values of a Service port's appProtocol.
const (
	protocolHTTP  = "http"
	protocolHTTPS = "https"
)

// IsTLS reports whether nginx speaks TLS on a port.
func IsTLS(port v1alpha2.Port) bool { return port.AppProtocol == protocolHTTPS }

// PortListens returns the number on which nginx listens for a port.
func PortListens(port v1alpha2.Port) int32 { return ptr.Deref(port.TargetPort, port.Port) }

// TLSListens returns the number on which nginx listens with a certificate, 0 where the certificate is only mounted.
func TLSListens(tls v1alpha2.TLS) int32 {
	if tls.Port == nil {
		return 0
	}
	return ptr.Deref(tls.TargetPort, *tls.Port)
}

// ListenPorts returns the numbers on which nginx listens for what the spec declares, plain and TLS.
func ListenPorts(spec *v1alpha2.NginxOperatorSpec) []int32 {
	var out []int32
	for _, port := range Ports(spec) {
		out = append(out, PortListens(port))
	}
	for _, tls := range TLS(spec) {
		if tls.Port != nil {
			out = append(out, TLSListens(tls))
		}
	}
	return out
}

// ServicePort is a port of the Service that a spec declares.
type ServicePort struct {
	// Name is the user's, "" for the port of a certificate.
	Name string
	// Number is what clients ask for, Listens the number on which nginx listens, NodePort that on each node, 0 where it is not given.
	Number, Listens, NodePort int32
	TLS                       bool
	AppProtocol               string
}

// ServicePorts returns the ports that have a name, then those of the certificates. Several certificates on one port are one port, that of
// the first.
func ServicePorts(spec *v1alpha2.NginxOperatorSpec) []ServicePort {
	var out []ServicePort
	for _, port := range Ports(spec) {
		out = append(out, ServicePort{
			Name: port.Name, Number: port.Port, Listens: PortListens(port), NodePort: ptr.Deref(port.NodePort, 0),
			TLS: IsTLS(port), AppProtocol: cmp.Or(port.AppProtocol, protocolHTTP),
		})
	}
	shared := map[int32]bool{}
	for _, tls := range TLS(spec) {
		if tls.Port == nil || shared[*tls.Port] {
			continue
		}
		shared[*tls.Port] = true
		out = append(out, ServicePort{
			Number: *tls.Port, Listens: TLSListens(tls), NodePort: ptr.Deref(tls.NodePort, 0), TLS: true, AppProtocol: protocolHTTPS,
		})
	}
	return out
}

// SameSpec reports whether two specs say the same. Other than to equality.Semantic, no plain HTTP is not the default to it.
func SameSpec(a, b *v1alpha2.NginxOperatorSpec) bool {
	return (a.Ports == nil) == (b.Ports == nil) && equality.Semantic.DeepEqual(a, b)
}
