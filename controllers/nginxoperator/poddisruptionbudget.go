package nginxoperator

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/metadata"
)

func desiredPodDisruptionBudget(object *v1alpha2.NginxOperator, in inputs) *policyv1.PodDisruptionBudget {
	budget := assets.PodDisruptionBudget()
	budget.ObjectMeta = childMeta(object, in)
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: metadata.Selector(object.Name)}
	return budget
}
