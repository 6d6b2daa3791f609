// Package health evaluates Deployments and their Pods. It is pure, except that the age of a sidecar
// is compared with the current time.
package health

import (
	"fmt"
	"regexp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
)

// Worst returns the first of Failures, or nil if there is none.
func Worst(deployment *appsv1.Deployment, pods []*corev1.Pod) *failure.Failure {
	if found := Failures(deployment, pods); len(found) > 0 {
		return &found[0]
	}
	return nil
}

// Failures returns why the Pods of a Deployment do not serve, the worst failure first. There is
// none if the Deployment is nil.
func Failures(deployment *appsv1.Deployment, pods []*corev1.Pod) []failure.Failure {
	if deployment == nil {
		return nil
	}

	var out []failure.Failure
	if deployment.Spec.Paused && !ProgressOf(deployment).Complete {
		out = append(out, failure.Failure{Reason: v1alpha2.ReasonDeploymentPaused, Message: fmt.Sprintf(
			"the Deployment is paused, so its rollout does not continue: run kubectl -n %s rollout resume deployment/%s",
			deployment.Namespace, deployment.Name)})
	}

	if failing := conditionOf(deployment, appsv1.DeploymentReplicaFailure, corev1.ConditionTrue); failing != nil {
		out = append(out, notCreated(failing.Message))
	}

	stalled := conditionOf(deployment, appsv1.DeploymentProgressing, corev1.ConditionFalse)
	if lacksReplicaSet(stalled) {
		out = append(out, notCreated(stalled.Message))
	}

	for _, pod := range pods {
		if found := PodFailure(pod); found != nil {
			out = append(out, *found)
		}
	}

	if len(out) == 0 && stalled != nil {
		out = append(out, failure.Failure{Reason: v1alpha2.ReasonProgressDeadlineExceeded, Message: stalled.Message})
	}

	return out
}

// RolloutFailure returns why a rollout fails that started at a time, or nil if it may still
// succeed. Failures that prove it are returned at once, all others once the progress deadline has
// passed. The Pods are those of the newest ReplicaSet, which has an earlier Pod template while the
// Deployment is paused, or its ReplicaSet cannot be created: then nothing fails.
func RolloutFailure(deployment *appsv1.Deployment, newest []*corev1.Pod, began time.Time) *failure.Failure {
	if deployment.Spec.Paused {
		return nil
	}

	for _, pod := range newest {
		if found := PodFailure(pod); found != nil && found.Certain {
			return found
		}
	}

	stalled := conditionOf(deployment, appsv1.DeploymentProgressing, corev1.ConditionFalse)
	if stalled == nil || stalled.LastUpdateTime.Time.Before(began) || lacksReplicaSet(stalled) {
		return nil
	}
	return Worst(deployment, newest)
}

// lacksReplicaSet reports whether the Deployment controller could not create the ReplicaSet of the
// Pod template. It retries, and does not observe the generation before that.
func lacksReplicaSet(stalled *appsv1.DeploymentCondition) bool {
	return stalled != nil && stalled.Reason == "ReplicaSetCreateError"
}

// refusedPod matches the start of the API server's message that it refuses a Pod. Any other message
// is about a request that failed, for example because an admission webhook did not answer.
var refusedPod = regexp.MustCompile(`^(Pods are forbidden|admission webhook "[^"]+" denied the request)`)

// invalidPod matches the start of the API server's message about a Pod that is not valid.
var invalidPod = regexp.MustCompile(`^Pod "[^"]*" is invalid`)

// notCreated returns the failure for the message of a controller that could not create an object.
func notCreated(message string) failure.Failure {
	message = randomPodName.ReplaceAllString(message, "Pods are ")
	reason := RefusalReason(message)
	switch {
	case reason == v1alpha2.ReasonQuotaExceeded:
		return failure.Failure{Reason: reason, Message: message + QuotaRemedy}
	case invalidPod.MatchString(message):
		return failure.Failure{Reason: reason, Message: message + ". Correct the spec, or the webhook that changes Pods"}
	case refusedPod.MatchString(message):
		return failure.Failure{Reason: reason, Message: message + ". Change the spec to comply, or change the policy"}
	}

	return failure.Failure{
		Reason:  v1alpha2.ReasonAPIError,
		Message: "failed to create Pods: " + message + ". Kubernetes retries. If this lasts, check the webhook or the API server",
	}
}
