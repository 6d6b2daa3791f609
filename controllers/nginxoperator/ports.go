package nginxoperator

import (
	"strconv"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// portHealth is the name of the container port for probes. The Service, the NetworkPolicy and the probes use the names of
// ports, so that Pods of two configurations can serve side by side on different ports.
const portHealth = "health"

// served is a port that the Service serves.
type served struct {
	name        string
	number      int32
	appProtocol string
}

// servedPorts returns the ports for plain HTTP, then those of the certificates.
func servedPorts(spec *v1alpha2.NginxOperatorSpec) []served {
	var out []served
	for _, port := range defaults.Ports(spec) {
		out = append(out, served{port.Name, port.Port, "http"})
	}
	for _, tls := range defaults.TLS(spec) {
		if tls.Port != nil {
			out = append(out, served{"tls-" + strconv.FormatInt(int64(*tls.Port), 10), *tls.Port, "https"})
		}
	}
	return out
}
