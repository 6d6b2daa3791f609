package nginxoperator

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// routed returns a change of a spec to an HTTPRoute with these names at one Gateway.
func routed(parent v1alpha2.GatewayReference, names ...string) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) {
		s.Expose = &v1alpha2.Expose{HTTPRoute: &v1alpha2.HTTPRoute{ParentRefs: []v1alpha2.GatewayReference{parent}, Hostnames: names}}
	}
}

// routeWith returns an HTTPRoute of generation 2 of which a controller says this at a Gateway.
func routeWith(parent gatewayv1.ParentReference, conditions ...metav1.Condition) *gatewayv1.HTTPRoute {
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	route.Status.Parents = []gatewayv1.RouteParentStatus{{ParentRef: parent, Conditions: conditions}}
	return route
}

func saidAt(generation int64, conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: "because", ObservedGeneration: generation}
}

// The HTTPRoute says which port, and there is none where the cluster has no such kind. Everything else is there all the same.
func TestDesiredHTTPRoute(t *testing.T) {
	object := newObject(routed(v1alpha2.GatewayReference{Name: "public"}, "a.example.com"), ports("web", 9090))
	in := newInputs(t, object, "", false)
	in.running = running{exposed: 8080, ready: sets.New[int32](8080), service: desiredService(newObject(onPort(8080)), in).Spec.Ports}
	if got := *desiredHTTPRoute(object, in).Spec.Rules[0].BackendRefs[0].Port; got != 8080 {
		t.Errorf("asks for port %d, where no Pod is ready", got)
	}
	in.running.ready.Insert(9090)
	if got := *desiredHTTPRoute(object, in).Spec.Rules[0].BackendRefs[0].Port; got != 9090 {
		t.Errorf("asks for port %d", got)
	}
	with := desired(object, in)
	in.missing = map[string]string{"HTTPRoute": "there is none"}
	without := desired(object, in)
	if diff := gocmp.Diff(with[:len(with)-1], without); diff != "" {
		t.Errorf("without the API (-want +got):\n%s", diff)
	}
	if kind := with[len(with)-1].GetObjectKind().GroupVersionKind().Kind; kind != "HTTPRoute" {
		t.Errorf("the last child is a %s", kind)
	}
}

// What a Gateway says of the route as it is now reaches the status, and Ready is about Pods alone.
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
		want    []failure
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
			want: []failure{{refused, at + "does not accept the HTTPRoute (NotAllowedByListeners): because"}},
		},
		"accepted with a backend that is not found": {
			route: routeWith(here, saidAt(2, accepted, isTrue, "Accepted"), saidAt(2, refs, isFalse, "BackendNotFound")),
			url:   "http://a.example.com",
			want:  []failure{{refused, at + "cannot resolve what the HTTPRoute names (BackendNotFound): because"}},
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
			want: []failure{{missing, "spec.expose.httpRoute: CRD is gone, so there is no HTTPRoute: " +
				"install the Gateway API, or use spec.expose.ingress"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.parent.Name = "public"
			if test.names == nil {
				test.names = []string{"*.example.com", "a.example.com"}
			}
			object := newObject(routed(test.parent, test.names...))
			result := newOutcome(t, object)
			result.applied.in.missing = map[string]string{"HTTPRoute": test.missing}
			state := observed{
				deployment: newDeployment(1), service: desiredService(object, inputs{}).Spec.Ports, route: test.route,
			}
			status := statusOf(object, state, result)
			var got []failure
			for _, blocker := range status.BlockedBy {
				got = append(got, failure{blocker.Reason, blocker.Message})
			}
			if diff := gocmp.Diff(test.want, got, gocmp.AllowUnexported(failure{})); diff != "" {
				t.Errorf("blockedBy (-want +got):\n%s", diff)
			}
			degraded := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionDegraded)
			if len(test.want) > 0 && (degraded.Status != isTrue || degraded.Message != test.want[0].message) ||
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

// A reconcile is made when a controller reports acceptance, and not for the operator's own write.
func TestHTTPRouteChanged(t *testing.T) {
	before := routeWith(gatewayv1.ParentReference{Name: "public"})
	after := before.DeepCopy()
	before.ResourceVersion, after.ResourceVersion = "1", "2"
	changed := childChanged(func(client.Object) bool { return true })
	if changed.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("a write that changes nothing is passed")
	}
	after.Status.Parents[0].Conditions = []metav1.Condition{saidAt(2, "Accepted", metav1.ConditionTrue, "Accepted")}
	if !changed.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("acceptance is not passed")
	}
}
