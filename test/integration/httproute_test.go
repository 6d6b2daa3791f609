package integration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

// routed returns a spec.expose with an HTTPRoute for a host.
func routed(host string) *v1alpha2.Expose {
	return &v1alpha2.Expose{HTTPRoute: &v1alpha2.HTTPRoute{
		ParentRefs: []v1alpha2.GatewayReference{{Name: "public", Namespace: "infra", SectionName: "https", Port: ptr.To[int32](443)}},
		Hostnames:  []string{"*.example.com", host},
	}}
}

// answer writes the status of a Gateway controller for the current generation of an HTTPRoute.
func answer(t *testing.T, namespace string, conditions ...metav1.Condition) {
	t.Helper()
	waitFor(t, func() error {
		route := must1(childrenOf(t.Context(), namespace, "web"))(t).route
		for i := range conditions {
			conditions[i].ObservedGeneration, conditions[i].LastTransitionTime = route.Generation, metav1.Now()
		}
		route.Status.Parents = []gatewayv1.RouteParentStatus{{
			ParentRef: route.Spec.ParentRefs[0], ControllerName: "example.com/controller", Conditions: conditions,
		}}
		return suite.admin.Status().Update(t.Context(), route)
	})
}

func said(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

// waitForBlockers waits until the status has exactly these blockers.
func waitForBlockers(t *testing.T, namespace string, want ...v1alpha2.Blocker) {
	t.Helper()
	waitForStatus(t, namespace, "web", func(object *v1alpha2.NginxOperator) error {
		if diff := cmp.Diff(want, object.Status.BlockedBy); diff != "" {
			return fmt.Errorf("blockedBy (-want +got):\n%s", diff)
		}
		return nil
	})
}

// routeRequests counts the operator's requests for HTTPRoutes after the first audited entries of
// the audit log, by verb.
func routeRequests(t *testing.T, audited int) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, entry := range audit(t)[audited:] {
		if entry.ObjectRef.Resource == "httproutes" {
			out[entry.Verb]++
		}
	}
	return out
}

// removeKinds removes CustomResourceDefinitions until the test ends, and restarts the operator.
// Before that, it verifies that the operator, which still watches the kinds, reconciles other
// objects. The returned function installs the CustomResourceDefinitions earlier, and restarts the
// operator again.
func removeKinds(t *testing.T, names ...string) (install func()) {
	t.Helper()
	for _, name := range names {
		must(t, harness.RemoveCRD(t.Context(), suite.admin, name))
	}
	waitForMarker(t, newNamespace(t))
	restartOperator(t)
	install = sync.OnceFunc(func() {
		for _, name := range names {
			must(t, harness.InstallCRD(context.Background(), suite.admin, suite.optional[name]))
		}
		restartOperator(t)
	})
	t.Cleanup(install) // the other tests need them
	return install
}

// TestTheGatewayAPIComesAndGoes verifies the operator without the Gateway API, with it, and after
// its removal. Without it, the status reports the missing API, all other children exist, and the
// operator sends no requests for HTTPRoutes. With it, the operator creates the HTTPRoute.
func TestTheGatewayAPIComesAndGoes(t *testing.T) {
	install := removeKinds(t, harness.HTTPRouteCRD)
	missing := v1alpha2.Blocker{
		Reason: v1alpha2.ReasonAPIMissing,
		Message: `spec.expose.httpRoute: CustomResourceDefinition "httproutes.gateway.networking.k8s.io" does not exist, ` +
			"is not established, or is being deleted, so there is no HTTPRoute. Install the Gateway API, or use spec.expose.ingress",
	}
	namespace := newNamespace(t)
	object := createWeb(t, namespace, func(s *v1alpha2.NginxOperatorSpec) { s.Expose = routed("shop.example.com") })
	waitForBlockers(t, namespace, missing)
	makeReady(t, namespace, "web")
	degraded := waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonAPIMissing)
	if degraded.Message != missing.Message {
		t.Error(degraded.Message)
	}

	audited := len(audit(t))
	install()
	waitForBlockers(t, namespace)
	waitForChildren(t, namespace, "web")
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)
	isRoute := func(related v1alpha2.RelatedObject) bool {
		return related == v1alpha2.RelatedObject{APIVersion: "gateway.networking.k8s.io/v1", Kind: "HTTPRoute", Name: "web"}
	}
	if status := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status; !slices.ContainsFunc(status.RelatedObjects, isRoute) {
		t.Errorf("related objects %v", status.RelatedObjects)
	}
	waitForMarker(t, namespace)
	if n := withoutEvents(writesOf(t, audited, namespace)); !cmp.Equal(n, map[string]int{"httproutes/": 1, "nginxoperators/status": 1}) {
		t.Errorf("that the API came costs %v", n)
	}

	install = removeKinds(t, harness.HTTPRouteCRD)
	waitForBlockers(t, namespace, missing)
	audited = len(audit(t))
	waitForMarker(t, namespace)
	if n := routeRequests(t, audited); len(n) > 0 {
		t.Errorf("requests without the API: %v", n)
	}
	ready := waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
	if ready.ObservedGeneration != object.Generation {
		t.Errorf("Ready is that of generation %d", ready.ObservedGeneration)
	}
	install()
	waitForBlockers(t, namespace)
	waitForChildren(t, namespace, "web")
}

// TestHTTPRoute verifies that the status reports the conditions that Gateways set on the HTTPRoute.
// The operator does not correct a controller's changes. An HTTPRoute that a Gateway rejects does
// not prevent Ready. Without spec.expose, the operator deletes the HTTPRoute. With an Ingress
// instead, and in the reverse direction, the old one stays until the new one works.
func TestHTTPRoute(t *testing.T) {
	t.Parallel()
	namespace, object, before := newReadyWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Expose = routed("shop.example.com") })
	inside := fmt.Sprintf("http://web.%s.svc:8080", namespace)
	waitForURL(t, namespace, inside)
	waitForBlockers(t, namespace)

	audited := len(audit(t))
	update(t, before.route, func(o *gatewayv1.HTTPRoute) { o.Annotations["controller.example.com/state"] = "synced" })
	accepted, resolved := string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteConditionResolvedRefs)
	answer(t, namespace, said(accepted, metav1.ConditionTrue, "Accepted", ""), said(resolved, metav1.ConditionTrue, "ResolvedRefs", ""))
	waitForURL(t, namespace, "https://shop.example.com")
	waitForMarker(t, namespace)
	if n := withoutEvents(writesOf(t, audited, namespace)); !cmp.Equal(n, map[string]int{"nginxoperators/status": 1}) {
		t.Errorf("what the controller wrote costs %v", n)
	}
	answer(t, namespace, said(accepted, metav1.ConditionFalse, "NotAllowedByListeners", "not from this namespace"),
		said(resolved, metav1.ConditionFalse, "BackendNotFound", "no Service"))
	const at = `spec.expose.httpRoute.parentRefs[0]: Gateway "infra/public" `
	waitForBlockers(t, namespace,
		v1alpha2.Blocker{
			Reason:  v1alpha2.ReasonRouteNotAccepted,
			Message: at + "does not accept the HTTPRoute (NotAllowedByListeners): not from this namespace",
		},
		v1alpha2.Blocker{
			Reason:  v1alpha2.ReasonRouteNotAccepted,
			Message: at + "cannot resolve the references of the HTTPRoute (BackendNotFound): no Service",
		})
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRouteNotAccepted)
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
	waitForURL(t, namespace, inside)

	// Conditions of an older generation of the HTTPRoute do not count.
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Expose.HTTPRoute.Hostnames = []string{"other.example.com"} })
	waitForBlockers(t, namespace)
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Expose = exposedAs("shop.example.com") })
	waitForOnly := func(ways ...string) {
		t.Helper()
		waitFor(t, func() error {
			got := must1(childrenOf(t.Context(), namespace, "web"))(t)
			if (got.route != nil) != slices.Contains(ways, "HTTPRoute") || (got.ingress != nil) != slices.Contains(ways, "Ingress") {
				return fmt.Errorf("want only %q: %v, %v", ways, got.route, got.ingress)
			}
			return nil
		})
	}
	waitForOnly("Ingress", "HTTPRoute")
	waitForMarker(t, namespace)
	waitForOnly("Ingress", "HTTPRoute")
	writeAddress(t, namespace, networkingv1.IngressLoadBalancerIngress{IP: "192.0.2.1"})
	waitForOnly("Ingress")

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Expose = routed("shop.example.com") })
	waitForOnly("Ingress", "HTTPRoute")
	answer(t, namespace, said(accepted, metav1.ConditionFalse, "NotAllowedByListeners", "not from this namespace"))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRouteNotAccepted)
	waitForOnly("Ingress", "HTTPRoute")
	answer(t, namespace, said(accepted, metav1.ConditionTrue, "Accepted", ""))
	waitForOnly("HTTPRoute")

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Expose = nil })
	waitForOnly()
	after := waitForChildren(t, namespace, "web")
	requireSamePods(t, before, after)
}
