//go:build bench || soak

package bench

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// childLists returns an empty list for each kind of child of a new object, in the operator's order
// of creation.
func childLists() []client.ObjectList {
	return []client.ObjectList{
		&corev1.ConfigMapList{}, &corev1.ServiceList{}, &networkingv1.NetworkPolicyList{}, &appsv1.DeploymentList{},
		&policyv1.PodDisruptionBudgetList{},
	}
}

// items returns the objects in a list.
func items(list client.ObjectList) []client.Object {
	var out []client.Object
	_ = meta.EachListItem(list, func(object runtime.Object) error { // the function returns no error
		out = append(out, object.(client.Object))
		return nil
	})
	return out
}
