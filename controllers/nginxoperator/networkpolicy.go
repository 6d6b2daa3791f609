package nginxoperator

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/metadata"
)

func desiredNetworkPolicy(object *v1alpha1.NginxOperator, in inputs) *networkingv1.NetworkPolicy {
	policy := assets.NetworkPolicy()
	policy.ObjectMeta = childMeta(object, in)
	policy.Spec.PodSelector = metav1.LabelSelector{MatchLabels: metadata.Selector(object.Name)}
	return policy
}
