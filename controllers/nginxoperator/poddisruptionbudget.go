package nginxoperator

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/wellknown"
)

// needsPodDisruptionBudget reports whether there is a budget. For a single Pod it would say nothing: one may be taken at a time.
func needsPodDisruptionBudget(replicas int32) bool { return replicas > 1 }

func desiredPodDisruptionBudget(object *v1alpha2.NginxOperator, in inputs) *policyv1.PodDisruptionBudget {
	budget := assets.PodDisruptionBudget()
	budget.ObjectMeta = childMeta(object, in)
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: wellknown.Selector(object.Name)}
	return budget
}

func isBudget(child client.Object) bool {
	_, ok := child.(*policyv1.PodDisruptionBudget)
	return ok
}
