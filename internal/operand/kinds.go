package operand

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	return append([]string{"NetworkPolicy", "HorizontalPodAutoscaler", "Ingress"}, optionalNames()...)
}
