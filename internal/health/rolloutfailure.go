package health

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
)

// RolloutFailure returns why a rollout fails that started at a time, or nil if it may still
// succeed. Failures that waiting does not mend are returned at once, all others once the progress
// deadline has passed. The Pods are those of the newest ReplicaSet.
func RolloutFailure(deployment *appsv1.Deployment, newest []*corev1.Pod, began time.Time) *failure.Failure {
	for _, pod := range newest {
		if found := PodFailure(pod); found != nil && isCertain(found) {
			return found
		}
	}
	progressing := deploymentCondition(deployment, appsv1.DeploymentProgressing)
	if progressing == nil || progressing.Status != corev1.ConditionFalse || progressing.LastUpdateTime.Time.Before(began) {
		return nil
	}
	return Worst(deployment, newest)
}

// isCertain reports whether waiting does not mend a failure.
func isCertain(found *failure.Failure) bool {
	if found.CanPass() {
		return false
	}
	switch found.Reason {
	case v1alpha2.ReasonInvalidConfiguration, v1alpha2.ReasonCrashLoop, v1alpha2.ReasonContainerConfigError:
		return true
	case v1alpha2.ReasonImagePullFailed:
		// Messages of registries and container runtimes. A registry that does not answer may do so
		// a moment later.
		return slices.ContainsFunc([]string{"not found", "not exist", "manifest unknown", "InvalidImageName", "invalid reference"},
			func(words string) bool { return strings.Contains(found.Message, words) })
	}
	return false
}
