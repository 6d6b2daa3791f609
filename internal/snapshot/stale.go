package snapshot

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	for _, kind := range operand.DispensableKinds() {
		if slices.ContainsFunc(declared, func(one client.Object) bool { return one.GetObjectKind().GroupVersionKind().Kind == kind }) ||
			slices.ContainsFunc(unrendered, func(one operand.OptionalKind) bool { return one.Kind == kind }) {
			continue
		}
		child := operand.New(kind)
		found, err := r.live(ctx, object, kind, child)
		if err != nil {
			return nil, err
		}
		if found {
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
