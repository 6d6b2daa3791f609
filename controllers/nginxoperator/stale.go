package nginxoperator

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// staleChildren returns the children that exist and are no longer declared. A ConfigMap stays as long as a revision of the
// Deployment mounts it, because Pods of that revision may still start. The record of the last good revision stays.
func (r *Reconciler) staleChildren(
	ctx context.Context, object *v1alpha2.NginxOperator, declared []client.Object,
) ([]client.Object, error) {
	revisions, replicaSets := &appsv1.ControllerRevisionList{}, &appsv1.ReplicaSetList{}
	budgets, configMaps := &policyv1.PodDisruptionBudgetList{}, &corev1.ConfigMapList{}
	for _, list := range []client.ObjectList{revisions, budgets, configMaps, replicaSets} {
		if err := r.Client.List(ctx, list, ofInstance(object)...); err != nil {
			return nil, fmt.Errorf("failed to list children: %w", err)
		}
	}
	neededBudgets, neededConfigMaps := namesOfKind[*policyv1.PodDisruptionBudget](declared), namesOfKind[*corev1.ConfigMap](declared)
	for i := range replicaSets.Items {
		neededConfigMaps.Insert(mountedConfigMaps(&replicaSets.Items[i].Spec.Template)...)
	}
	var out []client.Object
	add := func(child client.Object, needed sets.Set[string]) {
		if !needed.Has(child.GetName()) && metav1.IsControlledBy(child, object) && child.GetDeletionTimestamp().IsZero() {
			out = append(out, child.DeepCopyObject().(client.Object))
		}
	}
	for i := range budgets.Items {
		add(&budgets.Items[i], neededBudgets)
	}
	kinds := []string{"NetworkPolicy", "HorizontalPodAutoscaler", "Ingress"}
	for _, child := range optionalChildren {
		kinds = append(kinds, child.kind)
	}
	for _, kind := range kinds {
		if slices.ContainsFunc(declared, func(one client.Object) bool { return one.GetObjectKind().GroupVersionKind().Kind == kind }) {
			continue
		}
		child := newChild(v1alpha2.RelatedObject{Kind: kind})
		found, err := r.live(ctx, object, kind, child)
		if err != nil {
			return nil, err
		}
		if found {
			add(child, nil)
		}
	}
	for i := range configMaps.Items {
		add(&configMaps.Items[i], neededConfigMaps)
	}
	// A record is stale once there is a newer one; what only looks at what would change has none.
	if current := namesOfKind[*appsv1.ControllerRevision](declared); len(current) > 0 {
		if good := object.Status.LastGoodRevision; good != nil {
			current.Insert(good.Revision)
		}
		for i := range revisions.Items {
			add(&revisions.Items[i], current)
		}
	}
	return out, nil
}

// namesOfKind returns the names of the children that are of a kind.
func namesOfKind[T client.Object](children []client.Object) sets.Set[string] {
	out := sets.New[string]()
	for _, child := range children {
		if _, ok := child.(T); ok {
			out.Insert(child.GetName())
		}
	}
	return out
}
