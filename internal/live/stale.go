package live

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/operand"
)

// Stale returns copies of the children that exist, belong to the object, and are neither declared
// nor of an unrendered kind. A ConfigMap stays while a ReplicaSet mounts it, as its Pods may still
// start. The ControllerRevision of the status stays, and all with a Deployment before 0.8.0.
func (s State) Stale(declared []client.Object, unrendered []operand.OptionalKind) ([]client.Object, error) {
	needed, kinds := sets.New[key](), sets.New[string]()
	for _, child := range declared {
		needed.Insert(keyOf(child))
		kinds.Insert(operand.KindOf(child))
	}
	for _, child := range unrendered {
		kinds.Insert(child.Kind)
	}

	for _, replicaSet := range allOf[*appsv1.ReplicaSet](s) {
		for _, name := range cached.MountedConfigMaps(cached.TemplateOf(replicaSet)) {
			needed.Insert(key{"ConfigMap", name})
		}
	}

	if stored := s.object.Status.StoredRevision; stored != nil {
		needed.Insert(key{revisionKind, stored.Name})
	}

	candidates := []string{"PodDisruptionBudget"}
	for _, kind := range operand.DispensableKinds() {
		if !kinds.Has(kind) && !s.isOnlyEntrance(kind, kinds) {
			candidates = append(candidates, kind)
		}
	}

	candidates = append(candidates, "ConfigMap")
	if !operand.IsMarkedAsBefore(s.Deployment()) {
		candidates = append(candidates, revisionKind)
	}

	var out []client.Object
	for _, kind := range candidates {
		for _, child := range s.objects {
			if operand.KindOf(child) == kind && !needed.Has(keyOf(child)) && s.owns(child) {
				out = append(out, child.DeepCopyObject().(client.Object))
			}
		}
	}

	return out, s.errorOf(append(candidates, "ReplicaSet")...)
}

const revisionKind = "ControllerRevision"

// isOnlyEntrance reports whether clients need an Ingress that a declared HTTPRoute replaces, or the
// reverse: no Gateway has accepted the HTTPRoute, or the Ingress has no address.
func (s State) isOnlyEntrance(kind string, declared sets.Set[string]) bool {
	switch {
	case kind == ingressKind && declared.Has(operand.HTTPRouteKind.Kind):
		return !isAccepted(s.httpRoute())
	case kind == operand.HTTPRouteKind.Kind && declared.Has(ingressKind):
		return len(ingressAddresses(s.ingress())) == 0
	}
	return false
}

const ingressKind = "Ingress"

func isAccepted(route *gatewayv1.HTTPRoute) bool {
	return slices.ContainsFunc(route.Status.Parents, func(parent gatewayv1.RouteParentStatus) bool {
		current := operand.CurrentConditions(route, parent.Conditions)
		return meta.IsStatusConditionTrue(current, string(gatewayv1.RouteConditionAccepted))
	})
}
