package status

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
)

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
			want:  []failure.Failure{{Reason: refused, Message: at + "cannot resolve what the HTTPRoute names (BackendNotFound): because"}},
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
			want: []failure.Failure{{Reason: missing, Message: "spec.expose.httpRoute: CRD is gone, so there is no HTTPRoute: " +
				"install the Gateway API, or use spec.expose.ingress"}},
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
			if diff := gocmp.Diff(test.want, got, gocmp.AllowUnexported(failure.Failure{})); diff != "" {
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
