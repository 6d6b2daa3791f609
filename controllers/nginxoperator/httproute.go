package nginxoperator

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

var httpRouteChild = optionalChild{
	kind: "HTTPRoute", at: specPath.Child("expose", "httpRoute"), wayOut: "install the Gateway API, or use spec.expose.ingress",
	empty:      func() client.Object { return &gatewayv1.HTTPRoute{} },
	isDeclared: hasHTTPRoute,
	desired:    func(object *v1alpha2.NginxOperator, in inputs) client.Object { return desiredHTTPRoute(object, in) },
}

// hasHTTPRoute reports whether an HTTPRoute is declared in front of the Service.
func hasHTTPRoute(spec *v1alpha2.NginxOperatorSpec) bool {
	return spec.Expose != nil && spec.Expose.HTTPRoute != nil
}

// desiredHTTPRoute returns the way in through Gateways. It says all that decides where requests go, also where the schema of the
// kind would say the same: what was never declared is not restored.
func desiredHTTPRoute(object *v1alpha2.NginxOperator, in inputs) *gatewayv1.HTTPRoute {
	form := object.Spec.Expose.HTTPRoute
	route := &gatewayv1.HTTPRoute{
		TypeMeta:   metav1.TypeMeta{APIVersion: gatewayv1.GroupVersion.String(), Kind: "HTTPRoute"},
		ObjectMeta: childMeta(object, in),
	}
	for _, parent := range form.ParentRefs {
		route.Spec.ParentRefs = append(route.Spec.ParentRefs, gatewayv1.ParentReference{
			Group: ptr.To[gatewayv1.Group](gatewayv1.GroupName), Kind: ptr.To[gatewayv1.Kind]("Gateway"), Name: gatewayv1.ObjectName(parent.Name),
			Namespace: given(gatewayv1.Namespace(parent.Namespace)), SectionName: given(gatewayv1.SectionName(parent.SectionName)),
			Port: parent.Port,
		})
	}
	for _, name := range form.Hostnames {
		route.Spec.Hostnames = append(route.Spec.Hostnames, gatewayv1.Hostname(name))
	}
	backend := gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{
			Group: ptr.To[gatewayv1.Group](""), Kind: ptr.To[gatewayv1.Kind]("Service"), Name: gatewayv1.ObjectName(object.Name),
			Port: ptr.To(backendPort(&object.Spec, in.running)),
		},
		Weight: ptr.To[int32](1),
	}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{{
		Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
			Type: ptr.To(gatewayv1.PathMatchPathPrefix), Value: ptr.To("/"),
		}}},
		BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: backend}},
	}}
	return route
}

// given returns a text, nil where it is empty.
func given[T ~string](text T) *T {
	if text == "" {
		return nil
	}
	return &text
}

// liveHTTPRoute returns the HTTPRoute that belongs to the object, an empty one where there is none.
func (r *Reconciler) liveHTTPRoute(ctx context.Context, object *v1alpha2.NginxOperator) (*gatewayv1.HTTPRoute, error) {
	route := &gatewayv1.HTTPRoute{}
	if found, err := r.live(ctx, object, "HTTPRoute", route); !found {
		return &gatewayv1.HTTPRoute{}, err
	}
	return route, nil
}

// routeFailures tells what keeps the HTTPRoute of a declaration from clients. Pods serve all the same.
func routeFailures(applied *declaration, route *gatewayv1.HTTPRoute) []failure {
	if applied == nil || !hasHTTPRoute(&applied.object.Spec) || applied.in.missing[httpRouteChild.kind] != "" {
		return nil
	}
	var out []failure
	for i, parent := range applied.object.Spec.Expose.HTTPRoute.ParentRefs {
		name := cmp.Or(parent.Namespace, applied.object.Namespace) + "/" + parent.Name
		for _, said := range saidOf(parent, applied.object.Namespace, route) {
			for _, about := range []struct{ condition, what string }{
				{string(gatewayv1.RouteConditionAccepted), "does not accept the HTTPRoute"},
				{string(gatewayv1.RouteConditionResolvedRefs), "cannot resolve what the HTTPRoute names"},
			} {
				found := meta.FindStatusCondition(said, about.condition)
				if found == nil || found.Status != metav1.ConditionFalse || found.Reason == string(gatewayv1.RouteReasonPending) {
					continue
				}
				out = append(out, failure{v1alpha2.ReasonRouteNotAccepted, fmt.Sprintf("%s: Gateway %q %s (%s): %s",
					httpRouteChild.at.Child("parentRefs").Index(i), name, about.what, found.Reason, found.Message)})
			}
		}
	}
	return out
}

// saidOf returns what each controller says of the HTTPRoute at a Gateway, but for what it said of an earlier generation.
func saidOf(parent v1alpha2.GatewayReference, namespace string, route *gatewayv1.HTTPRoute) [][]metav1.Condition {
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
		var now []metav1.Condition
		for _, condition := range status.Conditions {
			if condition.ObservedGeneration == 0 || condition.ObservedGeneration >= route.Generation {
				now = append(now, condition)
			}
		}
		out = append(out, now)
	}
	return out
}

// routeURL returns the URL of the first name that is no wildcard, once a Gateway has accepted the HTTPRoute. Whether it speaks TLS its
// port says, where that is given; Gateways are not read.
func routeURL(object *v1alpha2.NginxOperator, route *gatewayv1.HTTPRoute) (string, bool) {
	form := object.Spec.Expose.HTTPRoute
	for _, parent := range form.ParentRefs {
		for _, said := range saidOf(parent, object.Namespace, route) {
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
