package nginxoperator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/metadata"
)

// observed is the state of the operands at the end of a pass.
type observed struct {
	// deployment is nil where there is none that belongs to the object.
	deployment *appsv1.Deployment
	// pods are those of the Deployment that are not being deleted, in the order of their names.
	pods []*corev1.Pod
}

// instanceIndex is the cache's index of the kinds that are listed, by the instance that they are labelled with. Without
// it each list would walk through all objects of the namespace.
const instanceIndex = "instance"

// indexInstances adds the index to a cache.
func indexInstances(ctx context.Context, indexer client.FieldIndexer) error {
	for _, kind := range []client.Object{&appsv1.ReplicaSet{}, &corev1.ConfigMap{}, &corev1.Pod{}, &policyv1.PodDisruptionBudget{}} {
		err := indexer.IndexField(ctx, kind, instanceIndex, func(object client.Object) []string {
			return []string{object.GetLabels()[metadata.LabelInstance]}
		})
		if err != nil {
			return fmt.Errorf("failed to index %T: %w", kind, err)
		}
	}
	return nil
}

// ofInstance selects in the cache what belongs to an object, by label. The lists that use it hold kinds that only
// others write, or bear to be a moment old, so they need not wait for the writes of other workers.
func ofInstance(object *v1alpha2.NginxOperator) []client.ListOption {
	return []client.ListOption{
		client.InNamespace(object.Namespace),
		client.MatchingFields{instanceIndex: object.Name},
		client.MatchingLabels(metadata.Selector(object.Name)),
		client.DisableReadYourWritesConsistency,
	}
}

// liveDeployment returns the Deployment that belongs to the object, nil where there is none.
func (r *Reconciler) liveDeployment(ctx context.Context, object *v1alpha2.NginxOperator) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), deployment)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read Deployment: %w", err)
	}
	if !metav1.IsControlledBy(deployment, object) {
		return nil, nil
	}
	return deployment, nil
}

func (r *Reconciler) observe(ctx context.Context, object *v1alpha2.NginxOperator) (observed, error) {
	deployment, err := r.liveDeployment(ctx, object)
	if err != nil || deployment == nil {
		return observed{}, err
	}
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, ofInstance(object)...); err != nil {
		return observed{}, fmt.Errorf("failed to list Pods: %w", err)
	}
	out := observed{deployment: deployment}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp.IsZero() {
			out.pods = append(out.pods, &pods.Items[i])
		}
	}
	slices.SortFunc(out.pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// unwanted returns the children that exist and are no longer declared. A ConfigMap stays as long as a revision of the
// Deployment mounts it, because Pods of that revision may still start.
func (r *Reconciler) unwanted(ctx context.Context, object *v1alpha2.NginxOperator, declared []client.Object) ([]client.Object, error) {
	budgets, configMaps, replicaSets := &policyv1.PodDisruptionBudgetList{}, &corev1.ConfigMapList{}, &appsv1.ReplicaSetList{}
	for _, list := range []client.ObjectList{budgets, configMaps, replicaSets} {
		if err := r.Client.List(ctx, list, ofInstance(object)...); err != nil {
			return nil, fmt.Errorf("failed to list children: %w", err)
		}
	}
	wantedBudgets, wantedConfigMaps := sets.New[string](), sets.New[string]()
	for _, child := range declared {
		switch child.(type) {
		case *policyv1.PodDisruptionBudget:
			wantedBudgets.Insert(child.GetName())
		case *corev1.ConfigMap:
			wantedConfigMaps.Insert(child.GetName())
		}
	}
	for i := range replicaSets.Items {
		wantedConfigMaps.Insert(mountedConfigMaps(&replicaSets.Items[i].Spec.Template)...)
	}
	var out []client.Object
	add := func(child client.Object, wanted sets.Set[string]) {
		if !wanted.Has(child.GetName()) && metav1.IsControlledBy(child, object) && child.GetDeletionTimestamp().IsZero() {
			out = append(out, child.DeepCopyObject().(client.Object))
		}
	}
	for i := range budgets.Items {
		add(&budgets.Items[i], wantedBudgets)
	}
	for i := range configMaps.Items {
		add(&configMaps.Items[i], wantedConfigMaps)
	}
	return out, nil
}
