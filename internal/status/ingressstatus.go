package status

import (
	"strings"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
)

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
