package nginxoperator

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
)

// TestMissingKind verifies that a declared child of an optional kind stays if the kind was not
// served at the election, but is served again. A child that is no longer declared goes.
func TestMissingKind(t *testing.T) {
	p := newProcess(t)
	delete(p.reconciler.Missing, "HTTPRoute")
	p.edit(fixture.Routed(v1alpha2.GatewayReference{Name: "gateway"}, "www.example.com"))
	read[gatewayv1.HTTPRoute](p, instance.Name)

	// The client of the test reads and deletes HTTPRoutes, whatever this says.
	p.reconciler.Missing["HTTPRoute"] = "not installed"
	p.reconcile()
	read[gatewayv1.HTTPRoute](p, instance.Name)

	delete(p.reconciler.Missing, "HTTPRoute")
	p.edit(func(s *v1alpha2.NginxOperatorSpec) { s.Expose = nil })
	if err := p.Get(t.Context(), instance, &gatewayv1.HTTPRoute{}); !apierrors.IsNotFound(err) {
		t.Errorf("the HTTPRoute that is no longer declared: %v", err)
	}
}
