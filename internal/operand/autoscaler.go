package operand

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/defaults"
)

// DesiredAutoscaler returns the HorizontalPodAutoscaler. It measures only the nginx container:
// injected containers can lack requests, and then the utilization of the Pod is unknown.
func DesiredAutoscaler(object *v1alpha2.NginxOperator, in Inputs) *autoscalingv2.HorizontalPodAutoscaler {
	declared := defaults.Autoscaling(&object.Spec)
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: autoscalingv2.SchemeGroupVersion.String(), Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: ObjectMeta(object, in),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: object.Name,
			},
			MinReplicas: declared.MinReplicas, MaxReplicas: declared.MaxReplicas,
		},
	}

	if target := declared.TargetCPUUtilizationPercentage; target != nil {
		autoscaler.Spec.Metrics = append(autoscaler.Spec.Metrics, utilization(corev1.ResourceCPU, target))
	}
	if target := declared.TargetMemoryUtilizationPercentage; target != nil {
		autoscaler.Spec.Metrics = append(autoscaler.Spec.Metrics, utilization(corev1.ResourceMemory, target))
	}

	autoscaler.Spec.Behavior = as[*autoscalingv2.HorizontalPodAutoscalerBehavior](declared.Behavior)
	return autoscaler
}

// utilization returns the metric for a resource of the nginx container, in percent of its request.
func utilization(resource corev1.ResourceName, target *int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ContainerResourceMetricSourceType,
		ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
			Name: resource, Container: assets.Deployment().Spec.Template.Spec.Containers[0].Name,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: target},
		},
	}
}
