package operand

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

// Sized returns a Deployment with the size that an object declares: replicas, strategy, and
// deadlines. declared is the Deployment of the spec with its patches, or nil if the spec cannot be
// used. live is the live one, or nil.
func Sized(deployment, declared *appsv1.Deployment, object *v1alpha2.NginxOperator, live *appsv1.Deployment) *appsv1.Deployment {
	out := deployment.DeepCopy()
	if replicas := ReplicasOf(object, live); replicas.Number >= 0 && replicas.Number <= MaxReplicas {
		out.Spec.Replicas = &replicas.Number
		if delete(out.Annotations, wellknown.AnnotationReplicas); replicas.retained != "" {
			metav1.SetMetaDataAnnotation(&out.ObjectMeta, wellknown.AnnotationReplicas, replicas.retained)
		}
	}

	out.ResourceVersion = ""
	if live != nil {
		out.ResourceVersion = live.ResourceVersion
	}

	if declared != nil {
		out.Spec.Strategy, out.Spec.ProgressDeadlineSeconds = declared.Spec.Strategy, declared.Spec.ProgressDeadlineSeconds
	} else if len(object.Spec.Patches) == 0 {
		setRollout(out, object)
	}

	return out
}

// setRollout sets the strategy and the deadline of the spec.
func setRollout(deployment *appsv1.Deployment, object *v1alpha2.NginxOperator) {
	rollout := defaults.RolloutOf(&object.Spec)
	deployment.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
		MaxSurge: &rollout.MaxSurge, MaxUnavailable: &rollout.MaxUnavailable,
	}
	deployment.Spec.ProgressDeadlineSeconds = &rollout.ProgressDeadlineSeconds
}

// SizeOf returns the PodDisruptionBudget of a Deployment, if it has an effect, and its autoscaler.
// Both arguments can be nil.
func SizeOf(
	object *v1alpha2.NginxOperator, deployment *appsv1.Deployment, budget client.Object, scaler *autoscalingv2.HorizontalPodAutoscaler,
) []client.Object {
	var out []client.Object
	if ptr.Deref(deployment.Spec.Replicas, 1) > 1 {
		if budget == nil {
			budget = desiredPodDisruptionBudget(object, Inputs{})
		}
		out = append(out, budget.DeepCopyObject().(client.Object))
	}

	if scaler != nil {
		out = append(out, scaler.DeepCopy())
	}
	for _, child := range out {
		setVersion(child, deployment.Labels[wellknown.LabelVersion])
	}
	return out
}

// CanScale reports whether Pods request what the autoscaler of a spec measures, or limit it.
func CanScale(deployment *appsv1.Deployment, spec *v1alpha2.NginxOperatorSpec) bool {
	bounds := defaults.Autoscaling(spec)
	if bounds.MaxReplicas < 1 || bounds.MaxReplicas > MaxReplicas || *bounds.MinReplicas < 1 || *bounds.MinReplicas > bounds.MaxReplicas {
		return false
	}
	if deployment == nil {
		return true
	}

	lacks := func(resources corev1.ResourceRequirements, name corev1.ResourceName) bool {
		quantity, isRequest := resources.Requests[name]
		if !isRequest {
			quantity = resources.Limits[name]
		}
		return quantity.IsZero()
	}

	return !slices.ContainsFunc(deployment.Spec.Template.Spec.Containers, func(container corev1.Container) bool {
		return container.Name == wellknown.OperandContainer &&
			(bounds.TargetCPUUtilizationPercentage != nil && lacks(container.Resources, corev1.ResourceCPU) ||
				bounds.TargetMemoryUtilizationPercentage != nil && lacks(container.Resources, corev1.ResourceMemory))
	})
}

// AutoscalingOf returns the bounds of an autoscaler, or nil without one.
func AutoscalingOf(scaler *autoscalingv2.HorizontalPodAutoscaler) *v1alpha2.Autoscaling {
	if scaler == nil {
		return nil
	}
	return &v1alpha2.Autoscaling{MinReplicas: scaler.Spec.MinReplicas, MaxReplicas: scaler.Spec.MaxReplicas}
}
