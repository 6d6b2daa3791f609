package objectcache

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/internal/cached"
)

const (
	// maxParents is the maximum number of parent statuses of an HTTPRoute in the cache. It is also
	// the maximum number of Gateways in a spec.
	maxParents = 8
	// maxMessage and maxReason bound the fields of a condition.
	maxMessage, maxReason = 256, 64
)

// slimHTTPRoute keeps the port of the backend, and the conditions that Gateway controllers set.
func slimHTTPRoute(route *gatewayv1.HTTPRoute) {
	slimChild(route)
	spec := gatewayv1.HTTPRouteSpec{}
	if number := cached.RoutePort(route); number != 0 {
		spec.Rules = ruleTo(number)
	}

	var parents []gatewayv1.RouteParentStatus
	for _, parent := range route.Status.Parents {
		if len(parents) == maxParents {
			break
		}
		if kept, ok := slimParent(parent); ok {
			parents = append(parents, kept)
		}
	}

	route.Spec, route.Status.Parents = spec, parents
}

// slimParent keeps the conditions Accepted and ResolvedRefs of a Gateway.
func slimParent(parent gatewayv1.RouteParentStatus) (gatewayv1.RouteParentStatus, bool) {
	of := parent.ParentRef
	namespace, section := ptr.Deref(of.Namespace, ""), ptr.Deref(of.SectionName, "")
	if ptr.Deref(of.Group, gatewayv1.GroupName) != gatewayv1.GroupName || ptr.Deref(of.Kind, "Gateway") != "Gateway" ||
		max(len(of.Name), len(namespace), len(section)) > maxName {
		return gatewayv1.RouteParentStatus{}, false
	}

	out := gatewayv1.RouteParentStatus{ParentRef: gatewayv1.ParentReference{
		Name: of.Name, Namespace: of.Namespace, SectionName: of.SectionName, Port: of.Port,
	}}

	for _, about := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
		condition := meta.FindStatusCondition(parent.Conditions[:min(len(parent.Conditions), maxConditions)], string(about))
		if condition == nil {
			continue
		}

		kept := metav1.Condition{
			Type: string(about), Status: condition.Status, Reason: condition.Reason, Message: condition.Message,
			ObservedGeneration: condition.ObservedGeneration,
		}

		cut(maxReason, &kept.Reason)
		cut(maxMessage, &kept.Message)
		out.Conditions = append(out.Conditions, kept)
	}

	return out, true
}

func ruleTo(number int32) []gatewayv1.HTTPRouteRule {
	backend := gatewayv1.HTTPBackendRef{}
	backend.Port = &number
	return []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{backend}}}
}
