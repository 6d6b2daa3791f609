package health

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// Rolling reports whether the rollout of the newest Pod template has started and is not
	// complete.
	Rolling bool
	// Stalled reports whether the Deployment's progress deadline has passed.
	Stalled bool
	// Reason and Message describe the progress in a condition.
	Reason, Message string
}

// ProgressOf returns the progress of a Deployment, which is nil if it does not exist.
func ProgressOf(deployment *appsv1.Deployment) Progress {
	out := Progress{Reason: v1alpha2.ReasonRolloutInProgress, Message: "the Deployment does not exist yet"}
	if deployment == nil {
		return out
	}

	status, desired := deployment.Status, ptr.Deref(deployment.Spec.Replicas, 1)
	stalled := conditionOf(deployment, appsv1.DeploymentProgressing, corev1.ConditionFalse)
	observed := status.ObservedGeneration >= deployment.Generation
	out.Desired = desired
	switch {
	case desired == 0 && status.ObservedGeneration == 0 && status.Replicas == 0: // complete without its controller
		out.Complete, out.Message = true, "0 of 0 replicas are ready"
		return out
	case !observed && !lacksReplicaSet(stalled):
		out.Message = "the Deployment has changed and the Deployment controller has not observed it yet"
		return out
	}

	rolledOut := status.UpdatedReplicas == desired && status.Replicas == desired
	out.Complete = observed && rolledOut && status.AvailableReplicas >= desired
	out.Rolling, out.Stalled = !out.Complete, stalled != nil
	out.Message = fmt.Sprintf("%d of %d replicas are ready", status.ReadyReplicas, desired)
	if out.Rolling {
		out.Message += fmt.Sprintf(", %d updated", status.UpdatedReplicas)
	}

	progressing := conditionOf(deployment, appsv1.DeploymentProgressing, corev1.ConditionTrue)
	switch {
	case rolledOut && progressing != nil && progressing.Reason == "NewReplicaSetAvailable":
		out.Reason = v1alpha2.ReasonReplicasUnavailable
	case deployment.Spec.Paused:
		out.Reason = v1alpha2.ReasonDeploymentPaused
	}

	return out
}

// consequences returns what this package, and a status, read of the status of a Deployment.
func consequences(deployment *appsv1.Deployment) []any {
	progress, status := ProgressOf(deployment), &deployment.Status
	if progress.Complete {
		progress.Reason = "" // no condition has the reason of a complete rollout
	}

	var deadline metav1.Time // it may have passed in an earlier rollout
	if stalled := conditionOf(deployment, appsv1.DeploymentProgressing, corev1.ConditionFalse); stalled != nil {
		deadline = stalled.LastUpdateTime
	}
	return []any{
		progress, Failures(deployment, nil), deadline, status.Replicas, status.ReadyReplicas, status.UpdatedReplicas,
	}
}

// StatusChanged reports whether an earlier status of a Deployment had other consequences than the
// present one, for the functions of this package and for the counts in a status. The Deployment
// controller also changes times, and conditions that repeat the counts.
func StatusChanged(deployment *appsv1.Deployment, before appsv1.DeploymentStatus) bool {
	earlier := *deployment
	earlier.Status = before
	return !equality.Semantic.DeepEqual(consequences(&earlier), consequences(deployment))
}

// conditionOf returns the condition of a type that has a status, or nil.
func conditionOf(
	deployment *appsv1.Deployment, conditionType appsv1.DeploymentConditionType, status corev1.ConditionStatus,
) *appsv1.DeploymentCondition {
	for i := range deployment.Status.Conditions {
		if found := &deployment.Status.Conditions[i]; found.Type == conditionType && found.Status == status {
			return found
		}
	}
	return nil
}

// WantsPods reports whether a ReplicaSet requests Pods.
func WantsPods(replicaSet *appsv1.ReplicaSet) bool { return ptr.Deref(replicaSet.Spec.Replicas, 0) > 0 }

// QuotaRemedy ends the API server's message about an exceeded quota.
const QuotaRemedy = ". Raise the quota, or change the spec to request less"

// RefusalReason returns the reason for the API server's message that an object is forbidden: an
// exceeded quota, or any other.
func RefusalReason(message string) string {
	if strings.Contains(message, "exceeded quota") {
		return v1alpha2.ReasonQuotaExceeded
	}
	return v1alpha2.ReasonForbidden
}
