package operand

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// newOf has a constructor for each kind that every cluster has.
var newOf = map[string]func() client.Object{
	"ConfigMap":               func() client.Object { return &corev1.ConfigMap{} },
	"Service":                 func() client.Object { return &corev1.Service{} },
	"NetworkPolicy":           func() client.Object { return &networkingv1.NetworkPolicy{} },
	"Ingress":                 func() client.Object { return &networkingv1.Ingress{} },
	"Deployment":              func() client.Object { return &appsv1.Deployment{} },
	"PodDisruptionBudget":     func() client.Object { return &policyv1.PodDisruptionBudget{} },
	"HorizontalPodAutoscaler": func() client.Object { return &autoscalingv2.HorizontalPodAutoscaler{} },
}

// New returns an empty object of the kind of a child, or nil for any other kind.
func New(kind string) client.Object {
	if empty := newOf[kind]; empty != nil {
		return empty()
	}
	for _, child := range OptionalKinds {
		if child.Kind == kind {
			return child.empty()
		}
	}
	return nil
}

// DispensableKinds returns the kinds of which an object has either no child or one child with its
// name.
func DispensableKinds() []string {
	out := []string{"NetworkPolicy", "HorizontalPodAutoscaler", "Ingress"}
	for _, child := range OptionalKinds {
		out = append(out, child.Kind)
	}
	return out
}

// childKey identifies a child by its Go type and its name. Items of a list have no kind.
type childKey struct {
	kind reflect.Type
	name string
}

func keyOfChild(child client.Object) childKey {
	return childKey{reflect.TypeOf(child), child.GetName()}
}

// Stale returns copies of the children that exist, belong to the object, and are no longer
// declared. A ConfigMap stays while a ReplicaSet mounts it, because Pods of that ReplicaSet may
// still start. The records of the last good revision and of failed ones stay. If no record is declared,
// all records stay.
func Stale(
	object *v1alpha2.NginxOperator, declared, existing []client.Object, replicaSets []appsv1.ReplicaSet,
) []client.Object {
	needed, record, hasRecord := sets.New[childKey](), reflect.TypeFor[*appsv1.ControllerRevision](), false
	for _, child := range declared {
		needed.Insert(keyOfChild(child))
		hasRecord = hasRecord || reflect.TypeOf(child) == record
	}
	for i := range replicaSets {
		for _, name := range mountedConfigMaps(&replicaSets[i].Spec.Template) {
			needed.Insert(childKey{reflect.TypeFor[*corev1.ConfigMap](), name})
		}
	}
	if good := object.Status.LastGoodRevision; good != nil {
		needed.Insert(childKey{record, good.Revision})
	}
	for _, failed := range object.Status.FailedRevisions {
		needed.Insert(childKey{record, failed.Revision})
	}

	var out []client.Object
	for _, child := range existing {
		isKept := needed.Has(keyOfChild(child)) || !hasRecord && reflect.TypeOf(child) == record
		if !isKept && metav1.IsControlledBy(child, object) && child.GetDeletionTimestamp().IsZero() {
			out = append(out, child.DeepCopyObject().(client.Object))
		}
	}
	return out
}
