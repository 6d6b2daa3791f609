package status

import (
	"testing"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
)

// TestExposedURL verifies that the URL has the first host that is not a wildcard, once the Ingress
// has an address.
func TestExposedURL(t *testing.T) {
	const inside = "http://web.shop.svc:8080"
	host := func(name, secret string, paths ...string) v1alpha2.IngressHost {
		return v1alpha2.IngressHost{Host: name, TLSSecretName: secret, Paths: paths}
	}
	plain, secure, all := host("a.example.com", ""), host("b.example.com", "b"), host("*.example.com", "")
	type hosts = []v1alpha2.IngressHost
	for name, test := range map[string]struct {
		hosts     []v1alpha2.IngressHost
		addresses []string
		want      string
	}{
		"no Ingress":      {nil, []string{"192.0.2.1"}, inside},
		"no address":      {hosts{plain}, nil, inside},
		"plain":           {hosts{plain, secure}, []string{"192.0.2.1"}, "http://a.example.com"},
		"TLS":             {hosts{secure}, []string{"lb"}, "https://b.example.com"},
		"a path":          {hosts{host("a.example.com", "", "/shop/", "/")}, []string{"lb"}, "http://a.example.com/shop"},
		"a wildcard":      {hosts{all, plain}, []string{"lb"}, "http://a.example.com"},
		"only a wildcard": {hosts{all}, []string{"lb"}, inside},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject()
			if test.hosts != nil {
				fixture.Exposed(test.hosts...)(&object.Spec)
			}
			state := live.Observed{Service: operand.DesiredService(object, operand.Inputs{}).Spec.Ports, Addresses: test.addresses}
			if got := instanceURL(object, bySpec(object), state); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
