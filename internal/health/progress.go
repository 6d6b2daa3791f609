package health

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// Progress is the progress of a Deployment's rollout.
type Progress struct {
	// Desired is the number of Pods that the Deployment requests.
	Desired int32
	// Complete reports whether all Pods are available, all have the newest Pod template, and no
	// older Pod is left.
	Complete bool
	// Stalled reports whether the Deployment's progress deadline has passed.
	Stalled bool
	// Reason and Message describe the progress in a condition.
	Reason, Message string
}

// ProgressOf returns the progress of a Deployment, which is nil if it does not exist.
func ProgressOf(deployment *appsv1.Deployment) Progress {
	if deployment == nil {
		return Progress{Reason: v1alpha2.ReasonRolloutInProgress, Message: "the Deployment does not exist yet"}
	}
	status, desired := deployment.Status, ptr.Deref(deployment.Spec.Replicas, 1)
	if desired == 0 && status.ObservedGeneration == 0 && status.Replicas == 0 {
		// A Deployment without Pods that requests none is complete before its controller has
		// observed it.
		return Progress{Complete: true, Reason: v1alpha2.ReasonRolloutInProgress, Message: "0 of 0 replicas are ready"}
	}
	progressing := deploymentCondition(deployment, appsv1.DeploymentProgressing)
	observed := status.ObservedGeneration >= deployment.Generation
	if !observed && !lacksReplicaSet(progressing) {
		return Progress{Desired: desired, Reason: v1alpha2.ReasonRolloutInProgress, Message: "the Deployment was changed, its rollout starts"}
	}
	out := Progress{
		Desired: desired,
		Reason:  v1alpha2.ReasonRolloutInProgress,
		Message: fmt.Sprintf("%d of %d replicas are ready, %d updated", status.ReadyReplicas, desired, status.UpdatedReplicas),
	}
	if deployment.Spec.Paused {
		out.Reason = v1alpha2.ReasonDeploymentPaused
	}
	rolledOut := status.UpdatedReplicas == desired && status.Replicas == desired
	if progressing != nil {
		out.Stalled = progressing.Status == corev1.ConditionFalse
		if progressing.Reason == "NewReplicaSetAvailable" && rolledOut {
			out.Reason = v1alpha2.ReasonReplicasUnavailable
		}
	}
	out.Complete = observed && rolledOut && status.AvailableReplicas >= desired
	if out.Complete {
		out.Message = fmt.Sprintf("%d of %d replicas are ready", status.ReadyReplicas, desired)
	}
	return out
}

func deploymentCondition(deployment *appsv1.Deployment, conditionType appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range deployment.Status.Conditions {
		if deployment.Status.Conditions[i].Type == conditionType {
			return &deployment.Status.Conditions[i]
		}
	}
	return nil
}

// RollsOut reports whether a Deployment has started the rollout of its Pod template, and has not
// completed it.
func RollsOut(deployment *appsv1.Deployment) bool {
	if deployment == nil || ProgressOf(deployment).Complete {
		return false
	}
	observed := deployment.Status.ObservedGeneration >= deployment.Generation
	return observed || lacksReplicaSet(deploymentCondition(deployment, appsv1.DeploymentProgressing))
}

// WantsPods reports whether a ReplicaSet requests Pods.
func WantsPods(replicaSet *appsv1.ReplicaSet) bool { return ptr.Deref(replicaSet.Spec.Replicas, 0) > 0 }

// RefusalReason returns the reason for the API server's message that an object is forbidden: an
// exceeded quota, or any other.
func RefusalReason(message string) string {
	if strings.Contains(message, "exceeded quota") {
		return v1alpha2.ReasonQuotaExceeded
	}
	return v1alpha2.ReasonForbidden
}
