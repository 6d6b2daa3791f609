package operand

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// HTTPRouteKind is the kind of spec.expose.httpRoute.
var HTTPRouteKind = OptionalKind{
	Kind: "HTTPRoute", At: SpecPath.Child("expose", "httpRoute"), Remedy: "Install the Gateway API, or use spec.expose.ingress",
	IsDeclared: HasHTTPRoute, desired: desiredHTTPRoute,
}

// HasHTTPRoute reports whether the spec declares an HTTPRoute.
func HasHTTPRoute(spec *v1alpha2.NginxOperatorSpec) bool {
	return spec.Expose != nil && spec.Expose.HTTPRoute != nil
}

// desiredHTTPRoute returns the HTTPRoute. It sets all fields that route requests, including fields
// with a default in the schema: fields that are not declared are not restored after a drift.
func desiredHTTPRoute(object *v1alpha2.NginxOperator, in Inputs) client.Object {
	form := object.Spec.Expose.HTTPRoute
	route := &gatewayv1.HTTPRoute{
		TypeMeta:   metav1.TypeMeta{APIVersion: gatewayv1.GroupVersion.String(), Kind: "HTTPRoute"},
		ObjectMeta: ObjectMeta(object, in),
	}

	for _, parent := range form.ParentRefs {
		route.Spec.ParentRefs = append(route.Spec.ParentRefs, gatewayv1.ParentReference{
			Group: ptr.To[gatewayv1.Group](gatewayv1.GroupName), Kind: ptr.To[gatewayv1.Kind]("Gateway"), Name: gatewayv1.ObjectName(parent.Name),
			Namespace: orNil(gatewayv1.Namespace(parent.Namespace)), SectionName: orNil(gatewayv1.SectionName(parent.SectionName)),
			Port: parent.Port,
		})
	}

	for _, name := range form.Hostnames {
		route.Spec.Hostnames = append(route.Spec.Hostnames, gatewayv1.Hostname(name))
	}

	backend := gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{
			Group: ptr.To[gatewayv1.Group](""), Kind: ptr.To[gatewayv1.Kind]("Service"), Name: gatewayv1.ObjectName(object.Name),
			Port: ptr.To(mainPort(&object.Spec)),
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

// CurrentConditions returns the reported conditions without those of an earlier generation.
func CurrentConditions(route *gatewayv1.HTTPRoute, reported []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(reported), func(condition metav1.Condition) bool {
		return condition.ObservedGeneration != 0 && condition.ObservedGeneration < route.Generation
	})
}
