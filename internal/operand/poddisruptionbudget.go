package operand

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/wellknown"
)

// desiredPodDisruptionBudget returns the PodDisruptionBudget. It allows one disruption at a time,
// so it has no effect on a single Pod.
func desiredPodDisruptionBudget(object *v1alpha2.NginxOperator, in Inputs) *policyv1.PodDisruptionBudget {
	budget := assets.PodDisruptionBudget()
	budget.ObjectMeta = ObjectMeta(object, in)
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: wellknown.Selector(object.Name)}
	return budget
}

// IsBudget reports whether a child is a PodDisruptionBudget.
func IsBudget(child client.Object) bool {
	_, ok := child.(*policyv1.PodDisruptionBudget)
	return ok
}
