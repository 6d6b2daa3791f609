package operand

import (
	"testing"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// newInputs returns the inputs that a reconcile reads for an object without references. servers is
// the configuration.
func newInputs(t *testing.T, object *v1alpha2.NginxOperator, servers string, ipv6 bool) Inputs {
	t.Helper()
	return newInputsOf(t, object, nginxconf.Whole(servers), ipv6)
}

// newInputsOf is newInputs for a configuration of several keys.
func newInputsOf(t *testing.T, object *v1alpha2.NginxOperator, servers nginxconf.Servers, ipv6 bool) Inputs {
	t.Helper()
	release := Release{Image: fixture.Image, ExporterImage: fixture.ExporterImage, IPv6: ipv6, Nameservers: []string{"10.96.0.10"}}
	config, err := release.Configuration(object, servers)
	if err != nil {
		t.Fatal(err)
	}
	in := release.Inputs(object)
	in.Config = config
	return in
}
