package objectcache

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/wellknown"
)

// slimDeployment keeps the number of replicas, the number of the revision, the ID of the Pods, the
// names that an earlier release gave them, the hash of the certificates that Pods mount, the names
// of the objects that Pods need, whether the rollout is paused, and the status.
func slimDeployment(in any) (any, error) {
	deployment, ok := in.(*appsv1.Deployment)
	if !ok {
		return in, nil
	}
	annotations := numbersOf(deployment.Annotations)
	first, _, _ := strings.Cut(deployment.Annotations[wellknown.AnnotationFirstDeclaration], " ")
	if first != "" && len(first) <= maxNumberText {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[wellknown.AnnotationFirstDeclaration] = strings.Clone(first)
	}
	record := deployment.Labels[wellknown.LabelRecord]
	slimChild(deployment, &deployment.ObjectMeta)
	deployment.Annotations = annotations
	if record != "" && len(record) <= maxNumberText {
		deployment.Labels = map[string]string{wellknown.LabelRecord: record}
	}
	certificates := only(deployment.Spec.Template.Annotations, wellknown.AnnotationCertificates, maxNumberText)
	needed := cached.ReferencesOf(&deployment.Spec.Template.Spec)
	deployment.Spec = appsv1.DeploymentSpec{Replicas: deployment.Spec.Replicas, Paused: deployment.Spec.Paused}
	deployment.Spec.Template.Annotations = certificates
	deployment.Spec.Template.Spec = needed.PodSpec()
	conditions := slices.Clone(deployment.Status.Conditions[:min(len(deployment.Status.Conditions), maxConditions)])
	deployment.Status.Conditions = slices.DeleteFunc(conditions, func(condition appsv1.DeploymentCondition) bool {
		return condition.Type != appsv1.DeploymentProgressing && condition.Type != appsv1.DeploymentReplicaFailure
	})
	for i := range deployment.Status.Conditions {
		condition := &deployment.Status.Conditions[i]
		cut(&condition.Reason, &condition.Message)
	}
	return in, nil
}

func slimConfigMap(in any) (any, error) {
	if configMap, ok := in.(*corev1.ConfigMap); ok {
		slimChild(configMap, &configMap.ObjectMeta)
		configMap.Data, configMap.BinaryData = nil, nil
	}
	return in, nil
}

// slimControllerRevision keeps the number of the revision.
func slimControllerRevision(in any) (any, error) {
	if revision, ok := in.(*appsv1.ControllerRevision); ok {
		slimChild(revision, &revision.ObjectMeta)
		revision.Data = runtime.RawExtension{}
	}
	return in, nil
}

func slimNetworkPolicy(in any) (any, error) {
	if policy, ok := in.(*networkingv1.NetworkPolicy); ok {
		slimChild(policy, &policy.ObjectMeta)
		policy.Spec = networkingv1.NetworkPolicySpec{}
	}
	return in, nil
}

func slimPodDisruptionBudget(in any) (any, error) {
	if budget, ok := in.(*policyv1.PodDisruptionBudget); ok {
		slimChild(budget, &budget.ObjectMeta)
		budget.Spec, budget.Status = policyv1.PodDisruptionBudgetSpec{}, policyv1.PodDisruptionBudgetStatus{}
	}
	return in, nil
}

func slimAutoscaler(in any) (any, error) {
	if autoscaler, ok := in.(*autoscalingv2.HorizontalPodAutoscaler); ok {
		slimChild(autoscaler, &autoscaler.ObjectMeta)
		autoscaler.Spec, autoscaler.Status = autoscalingv2.HorizontalPodAutoscalerSpec{}, autoscalingv2.HorizontalPodAutoscalerStatus{}
	}
	return in, nil
}
