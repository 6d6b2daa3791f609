package health

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/internal/failure"
)

// RolloutFailure returns why a rollout fails that started at a time, or nil if it may still
// succeed. Failures that prove it are returned at once, all others once the progress deadline has
// passed. The Pods are those of the newest ReplicaSet. While the Deployment is paused, or its
// ReplicaSet cannot be created, that has an earlier Pod template, so nothing fails.
func RolloutFailure(deployment *appsv1.Deployment, newest []*corev1.Pod, began time.Time) *failure.Failure {
	if deployment.Spec.Paused {
		return nil
	}
	for _, pod := range newest {
		if found := PodFailure(pod); found != nil && found.Certain {
			return found
		}
	}
	progressing := deploymentCondition(deployment, appsv1.DeploymentProgressing)
	if progressing == nil || progressing.Status != corev1.ConditionFalse || progressing.LastUpdateTime.Time.Before(began) ||
		lacksReplicaSet(progressing) {
		return nil
	}
	return Worst(deployment, newest)
}
