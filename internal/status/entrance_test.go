package status

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
)

func TestInstanceURL(t *testing.T) {
	only := func(port int32) func(*v1alpha2.NginxOperatorSpec) {
		return func(s *v1alpha2.NginxOperatorSpec) {
			s.Ports, s.TLS = []v1alpha2.Port{}, []v1alpha2.TLS{{SecretName: "a", Port: ptr.To(port), TargetPort: ptr.To[int32](8443)}}
		}
	}
	ip, host := corev1.LoadBalancerIngress{IP: "192.0.2.1"}, corev1.LoadBalancerIngress{Hostname: "lb.example.com"}
	six := corev1.LoadBalancerIngress{IP: "2001:db8::1"}
	for _, test := range []struct {
		object  *v1alpha2.NginxOperator
		ingress []corev1.LoadBalancerIngress
		want    string
	}{
		{fixture.NewObject(fixture.OnPort(80)), nil, "http://web.shop.svc"},
		{fixture.NewObject(fixture.OnPort(8080)), nil, "http://web.shop.svc:8080"},
		{fixture.NewObject(fixture.OnPort(443)), nil, "http://web.shop.svc:443"},
		{fixture.NewObject(fixture.Ports("http", "80 to 8080")), nil, "http://web.shop.svc"},
		{fixture.NewObject(only(443)), nil, "https://web.shop.svc"},
		{fixture.NewObject(only(80)), nil, "https://web.shop.svc:80"},
		{fixture.NewObject(fixture.OnPort(80)), []corev1.LoadBalancerIngress{ip, host}, "http://192.0.2.1"},
		{fixture.NewObject(only(443)), []corev1.LoadBalancerIngress{host, ip}, "https://lb.example.com"},
		{fixture.NewObject(fixture.OnPort(80)), []corev1.LoadBalancerIngress{six}, "http://[2001:db8::1]"},
		{fixture.NewObject(fixture.OnPort(8080)), []corev1.LoadBalancerIngress{six}, "http://[2001:db8::1]:8080"},
	} {
		state := live.Observed{Service: operand.DesiredService(test.object, operand.Inputs{}).Spec.Ports, Balancer: test.ingress}
		if got := instanceURL(test.object, bySpec(test.object), state); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
	if object := fixture.NewObject(fixture.OnPort(80)); instanceURL(object, bySpec(object), live.Observed{}) != "" {
		t.Error("there is a URL without a Service")
	}
}

// TestURLOfAnEarlierEntrance verifies the URL while the entrance is not that of the spec: the host
// of the Ingress stays, and otherwise the URL has a port of the Service.
func TestURLOfAnEarlierEntrance(t *testing.T) {
	stored := &revision.Rendering{Entrance: &revision.Declaration{}}
	object := fixture.NewObject(fixture.OnPort(9090))
	object.Status.URL = "https://web.example.com"
	service := []corev1.ServicePort{{Name: "tls-443", Port: 443}}
	for want, state := range map[string]live.Observed{
		"https://web.example.com": {Service: service, Addresses: []string{"192.0.2.1"}}, "https://web.shop.svc": {Service: service},
	} {
		if got := instanceURL(object, stored, state); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// bySpec returns a rendering whose entrance is that of a spec.
func bySpec(object *v1alpha2.NginxOperator) *revision.Rendering {
	return &revision.Rendering{Entrance: &revision.Declaration{Object: object}}
}

func TestAddresses(t *testing.T) {
	ports := func(n int32) (out []corev1.ServicePort) {
		for i := range n {
			out = append(out, corev1.ServicePort{Port: 80 + i, NodePort: 30080 + i})
		}
		return out
	}
	nodePort := func(port int32) v1alpha2.Address {
		return v1alpha2.Address{Type: "NodePort", Value: fmt.Sprint(30000 + port), Port: port}
	}
	for name, test := range map[string]struct {
		state live.Observed
		want  []v1alpha2.Address
	}{
		"no Service": {},
		"ClusterIP":  {state: live.Observed{Service: []corev1.ServicePort{{Port: 80}}}},
		"NodePort":   {live.Observed{Service: ports(2)}, []v1alpha2.Address{nodePort(80), nodePort(81)}},
		"load balancer": {
			live.Observed{Service: ports(1), Balancer: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}, {Hostname: "lb.example.com"}, {}}},
			[]v1alpha2.Address{{Type: "LoadBalancerIP", Value: "192.0.2.1"}, {Type: "LoadBalancerHostname", Value: "lb.example.com"}, nodePort(80)},
		},
		"Ingress": {
			live.Observed{Service: []corev1.ServicePort{{Port: 80}}, Addresses: []string{"192.0.2.2"}},
			[]v1alpha2.Address{{Type: "Ingress", Value: "192.0.2.2"}},
		},
	} {
		if diff := cmp.Diff(test.want, addressesOf(test.state)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if n := len(addressesOf(live.Observed{Service: ports(32)})); n != maxAddresses {
		t.Errorf("%d addresses", n)
	}
}

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

// routeWith returns an HTTPRoute of generation 2 with the conditions of a controller for one
// parent.
func routeWith(parent gatewayv1.ParentReference, conditions ...metav1.Condition) *gatewayv1.HTTPRoute {
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	route.Status.Parents = []gatewayv1.RouteParentStatus{{ParentRef: parent, Conditions: conditions}}
	return route
}

func saidAt(generation int64, conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: "because", ObservedGeneration: generation}
}

// TestAcceptanceOfTheHTTPRoute verifies that the status reports a Gateway's conditions for the
// current generation of the route. These conditions do not affect Ready.
func TestAcceptanceOfTheHTTPRoute(t *testing.T) {
	const (
		inside           = "http://web.shop.svc:8080"
		accepted, refs   = "Accepted", "ResolvedRefs"
		at               = `spec.expose.httpRoute.parentRefs[0]: Gateway "shop/public" `
		isTrue, isFalse  = metav1.ConditionTrue, metav1.ConditionFalse
		refused, missing = v1alpha2.ReasonRouteNotAccepted, v1alpha2.ReasonAPIMissing
	)
	here := gatewayv1.ParentReference{Name: "public"}
	for name, test := range map[string]struct {
		parent  v1alpha2.GatewayReference
		names   []string
		route   *gatewayv1.HTTPRoute
		missing string
		url     string
		want    []failure.Failure
	}{
		"nobody says anything": {route: routeWith(here), url: inside},
		"no route yet":         {url: inside},
		"accepted":             {route: routeWith(here, saidAt(2, accepted, isTrue, "Accepted")), url: "http://a.example.com"},
		"at port 443": {
			parent: v1alpha2.GatewayReference{Port: ptr.To[int32](443)},
			route:  routeWith(gatewayv1.ParentReference{Name: "public", Port: ptr.To[int32](443)}, saidAt(2, accepted, isTrue, "Accepted")),
			url:    "https://a.example.com",
		},
		"at another port": {
			parent: v1alpha2.GatewayReference{Port: ptr.To[int32](8080)},
			route:  routeWith(gatewayv1.ParentReference{Name: "public", Port: ptr.To[int32](8080)}, saidAt(2, accepted, isTrue, "Accepted")),
			url:    "http://a.example.com:8080",
		},
		"only a wildcard": {
			names: []string{"*.example.com"}, route: routeWith(here, saidAt(2, accepted, isTrue, "Accepted")), url: inside,
		},
		"in words that say the same": {
			route: routeWith(gatewayv1.ParentReference{Name: "public", Namespace: ptr.To[gatewayv1.Namespace]("shop")},
				saidAt(0, accepted, isTrue, "Accepted")), url: "http://a.example.com",
		},
		"refused": {
			route: routeWith(here, saidAt(2, accepted, isFalse, "NotAllowedByListeners")), url: inside,
			want: []failure.Failure{{Reason: refused, Message: at + "does not accept the HTTPRoute (NotAllowedByListeners): because"}},
		},
		"accepted with a backend that is not found": {
			route: routeWith(here, saidAt(2, accepted, isTrue, "Accepted"), saidAt(2, refs, isFalse, "BackendNotFound")),
			url:   "http://a.example.com",
			want:  []failure.Failure{{Reason: refused, Message: at + "cannot resolve the references of the HTTPRoute (BackendNotFound): because"}},
		},
		"not looked at yet":    {route: routeWith(here, saidAt(2, accepted, isFalse, "Pending")), url: inside},
		"said of an older one": {route: routeWith(here, saidAt(1, accepted, isFalse, "NoMatchingParent")), url: inside},
		"said at another":      {route: routeWith(gatewayv1.ParentReference{Name: "other"}, saidAt(2, accepted, isFalse, "No")), url: inside},
		"said at one listener": {
			route: routeWith(gatewayv1.ParentReference{Name: "public", SectionName: ptr.To[gatewayv1.SectionName]("a")},
				saidAt(2, accepted, isFalse, "No")), url: inside,
		},
		"the cluster lacks API": {
			missing: "CRD is gone", url: inside,
			want: []failure.Failure{{Reason: missing, Message: "spec.expose.httpRoute: CRD is gone, so there is no HTTPRoute. " +
				"Install the Gateway API, or use spec.expose.ingress"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.parent.Name = "public"
			if test.names == nil {
				test.names = []string{"*.example.com", "a.example.com"}
			}
			object := fixture.NewObject(fixture.Routed(test.parent, test.names...))
			result := newOutcome(t, object)
			result.Applied.Missing = map[string]string{"HTTPRoute": test.missing}
			if test.missing != "" {
				result.Applied.Children = operand.WithoutMissing(result.Applied.Children, result.Applied.Missing)
			}
			state := live.Observed{
				Deployment: fixture.NewDeployment(1), Service: operand.DesiredService(object, operand.Inputs{}).Spec.Ports, Route: test.route,
			}
			status := statusOf(object, state, result)
			var got []failure.Failure
			for _, blocker := range status.BlockedBy {
				got = append(got, failure.Failure{Reason: blocker.Reason, Message: blocker.Message})
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(failure.Failure{})); diff != "" {
				t.Errorf("blockedBy (-want +got):\n%s", diff)
			}
			degraded := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionDegraded)
			if len(test.want) > 0 && (degraded.Status != isTrue || degraded.Message != test.want[0].Message) ||
				len(test.want) == 0 && degraded.Status != isFalse {
				t.Errorf("Degraded is %+v", degraded)
			}
			if !meta.IsStatusConditionTrue(status.Conditions, v1alpha2.ConditionReady) {
				t.Error("Ready is about Pods")
			}
			if status.URL != test.url {
				t.Errorf("url %s, want %s", status.URL, test.url)
			}
		})
	}
}
