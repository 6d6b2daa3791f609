package snapshot

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/operand"
)

// Stale reads the children of an object, and returns copies of those that are no longer declared.
// unrendered are the kinds of declared children that could not be rendered.
func (r Reader) Stale(
	ctx context.Context, object *v1alpha2.NginxOperator, declared []client.Object, unrendered []operand.OptionalKind,
) ([]client.Object, error) {
	revisions, replicaSets := &appsv1.ControllerRevisionList{}, &appsv1.ReplicaSetList{}
	budgets, configMaps := &policyv1.PodDisruptionBudgetList{}, &corev1.ConfigMapList{}
	for _, list := range []client.ObjectList{revisions, budgets, configMaps, replicaSets} {
		if err := r.List(ctx, list, Owned(object)...); err != nil {
			return nil, fmt.Errorf("failed to list children: %w", err)
		}
	}
	var existing []client.Object
	for i := range budgets.Items {
		existing = append(existing, &budgets.Items[i])
	}
	isDeclared := func(kind string) bool {
		return slices.ContainsFunc(declared, func(one client.Object) bool { return one.GetObjectKind().GroupVersionKind().Kind == kind }) ||
			slices.ContainsFunc(unrendered, func(one operand.OptionalKind) bool { return one.Kind == kind })
	}
	for _, kind := range operand.DispensableKinds() {
		if isDeclared(kind) {
			continue
		}
		child := operand.New(kind)
		found, err := r.live(ctx, object, kind, child)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		serves, err := r.isOnlyEntrance(ctx, object, kind, isDeclared)
		if err != nil {
			return nil, err
		}
		if !serves {
			existing = append(existing, child)
		}
	}
	for i := range configMaps.Items {
		existing = append(existing, &configMaps.Items[i])
	}
	for i := range revisions.Items {
		existing = append(existing, &revisions.Items[i])
	}
	return operand.Stale(object, declared, existing, replicaSets.Items), nil
}

// isOnlyEntrance reports whether a child of a kind is an Ingress that a declared HTTPRoute replaces,
// or the reverse, and the new one does not work yet: no Gateway has accepted the HTTPRoute, or the
// Ingress has no address. Clients need the old one until then.
func (r Reader) isOnlyEntrance(
	ctx context.Context, object *v1alpha2.NginxOperator, kind string, isDeclared func(kind string) bool,
) (bool, error) {
	switch {
	case kind == ingressKind && isDeclared(operand.HTTPRouteKind.Kind):
		route, err := r.httpRoute(ctx, object)
		return !isAccepted(route), err
	case kind == operand.HTTPRouteKind.Kind && isDeclared(ingressKind):
		ingress, err := r.ingress(ctx, object)
		return len(ingressAddresses(ingress)) == 0, err
	}
	return false, nil
}

const ingressKind = "Ingress"

// isAccepted reports whether a Gateway has accepted the current HTTPRoute.
func isAccepted(route *gatewayv1.HTTPRoute) bool {
	return slices.ContainsFunc(route.Status.Parents, func(parent gatewayv1.RouteParentStatus) bool {
		current := operand.CurrentConditions(route, parent.Conditions)
		return meta.IsStatusConditionTrue(current, string(gatewayv1.RouteConditionAccepted))
	})
}
