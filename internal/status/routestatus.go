package status

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
)

// routeFailures returns why Gateways do not serve the HTTPRoute of a declaration. Pods serve
// regardless.
func routeFailures(applied *revision.Rendering, route *gatewayv1.HTTPRoute) []failure.Failure {
	if applied == nil {
		return nil
	}
	declared := operand.ChildOf[*gatewayv1.HTTPRoute](applied.Children)
	if declared == nil {
		return nil
	}
	var out []failure.Failure
	for i, reference := range declared.Spec.ParentRefs {
		parent := v1alpha2.GatewayReference{
			Name: string(reference.Name), Namespace: string(ptr.Deref(reference.Namespace, "")),
			SectionName: string(ptr.Deref(reference.SectionName, "")), Port: reference.Port,
		}
		name := cmp.Or(parent.Namespace, declared.Namespace) + "/" + parent.Name
		for _, said := range conditionsFor(parent, declared.Namespace, route) {
			for _, about := range []struct{ condition, what string }{
				{string(gatewayv1.RouteConditionAccepted), "does not accept the HTTPRoute"},
				{string(gatewayv1.RouteConditionResolvedRefs), "cannot resolve what the HTTPRoute names"},
			} {
				found := meta.FindStatusCondition(said, about.condition)
				if found == nil || found.Status != metav1.ConditionFalse || found.Reason == string(gatewayv1.RouteReasonPending) {
					continue
				}
				out = append(out, failure.Failure{Reason: v1alpha2.ReasonRouteNotAccepted, Message: fmt.Sprintf("%s: Gateway %q %s (%s): %s",
					operand.HTTPRouteKind.At.Child("parentRefs").Index(i), name, about.what, found.Reason, found.Message)})
			}
		}
	}
	return out
}

// conditionsFor returns the current conditions of each controller for the HTTPRoute at a Gateway.
func conditionsFor(parent v1alpha2.GatewayReference, namespace string, route *gatewayv1.HTTPRoute) [][]metav1.Condition {
	if route == nil {
		return nil
	}
	var out [][]metav1.Condition
	for _, status := range route.Status.Parents {
		of := status.ParentRef
		at := string(ptr.Deref(of.Namespace, gatewayv1.Namespace(namespace)))
		if string(of.Name) != parent.Name || at != cmp.Or(parent.Namespace, namespace) ||
			string(ptr.Deref(of.SectionName, "")) != parent.SectionName || ptr.Deref(of.Port, 0) != ptr.Deref(parent.Port, 0) {
			continue
		}
		out = append(out, operand.CurrentConditions(route, status.Conditions))
	}
	return out
}

// routeURL returns the URL of the first host that is not a wildcard, once a Gateway has accepted
// the HTTPRoute. Gateways are not read, so only a declared port 443 means TLS.
func routeURL(object *v1alpha2.NginxOperator, route *gatewayv1.HTTPRoute) (string, bool) {
	form := object.Spec.Expose.HTTPRoute
	for _, parent := range form.ParentRefs {
		for _, said := range conditionsFor(parent, object.Namespace, route) {
			if !meta.IsStatusConditionTrue(said, string(gatewayv1.RouteConditionAccepted)) {
				continue
			}
			for _, name := range form.Hostnames {
				if port := ptr.Deref(parent.Port, 80); !strings.HasPrefix(name, "*") {
					return urlOf(name, defaults.ServicePort{Number: port, TLS: port == 443}), true
				}
			}
		}
	}
	return "", false
}

// MissingFailures returns a failure for each child of a declaration whose kind is not installed.
// Pods serve regardless.
func MissingFailures(applied *revision.Rendering) []failure.Failure {
	if applied == nil {
		return nil
	}
	var out []failure.Failure
	for _, child := range applied.Unrendered() {
		missing := applied.Missing[child.Kind]
		message := fmt.Sprintf("%s: %s, so there is no %s: %s", child.At, missing, child.Kind, child.Remedy)
		out = append(out, failure.Failure{Reason: v1alpha2.ReasonAPIMissing, Message: message})
	}
	return out
}
