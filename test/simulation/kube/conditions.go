package kube

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/example/nginx-operator/test/simulation/storage"
)

// Reasons of the condition Progressing.
const (
	reasonPaused    = "DeploymentPaused"
	reasonAvailable = "NewReplicaSetAvailable"
	reasonTimedOut  = "ProgressDeadlineExceeded"
)

func conditionOf(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			return status.Conditions[i].DeepCopy()
		}
	}
	return nil
}

// setCondition sets a condition. One with the same status and reason stays as it is.
func (k *Kube) setCondition(status *appsv1.DeploymentStatus, condition appsv1.DeploymentCondition) {
	before, now := conditionOf(status, condition.Type), at(k.Store.Now())
	if before != nil && before.Status == condition.Status && before.Reason == condition.Reason {
		return
	}
	condition.LastUpdateTime, condition.LastTransitionTime = now, now
	if before != nil && before.Status == condition.Status {
		condition.LastTransitionTime = before.LastTransitionTime
	}
	status.Conditions = append(without(status.Conditions, condition.Type), condition)
}

func without(conditions []appsv1.DeploymentCondition, kind appsv1.DeploymentConditionType) []appsv1.DeploymentCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
}

// pauseConditions reports a pause, and its end, from which the deadline counts again. A deadline
// that has passed stays reported.
func (k *Kube) pauseConditions(d *appsv1.Deployment) {
	before := conditionOf(&d.Status, appsv1.DeploymentProgressing)
	if before != nil && before.Reason == reasonTimedOut || d.Spec.Paused == (before != nil && before.Reason == reasonPaused) {
		return
	}
	condition := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionUnknown}
	condition.Reason, condition.Message = "DeploymentResumed", "Deployment is resumed"
	if d.Spec.Paused {
		condition.Reason, condition.Message = reasonPaused, "Deployment is paused"
	}
	k.updateStatus(d, condition)
}

// statusOf returns the status of a Deployment, with its earlier condition Progressing.
func (k *Kube) statusOf(d *appsv1.Deployment, newest *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) appsv1.DeploymentStatus {
	all := append(slices.Clone(old), newest)
	out := appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, AvailableReplicas: available(all...), Conditions: slices.Clone(d.Status.Conditions),
	}
	out.UnavailableReplicas = max(wanted(all...)-out.AvailableReplicas, 0)
	for _, rs := range all {
		if rs != nil {
			out.Replicas += rs.Status.Replicas
			out.ReadyReplicas += rs.Status.ReadyReplicas
		}
	}
	if newest != nil {
		out.UpdatedReplicas = newest.Status.Replicas
	}
	_, unavailable := boundsOf(d)
	condition := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable",
		Message: "Deployment does not have minimum availability.",
	}
	if out.AvailableReplicas >= *d.Spec.Replicas-unavailable {
		condition.Status, condition.Reason = corev1.ConditionTrue, "MinimumReplicasAvailable"
		condition.Message = "Deployment has minimum availability."
	}
	k.setCondition(&out, condition)
	return out
}

// isComplete reports whether all replicas are updated and available, and no others exist.
func isComplete(d *appsv1.Deployment, status *appsv1.DeploymentStatus) bool {
	want := *d.Spec.Replicas
	return status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want &&
		status.ObservedGeneration >= d.Generation
}

// progressed reports whether a rollout has progressed since the last status.
func progressed(before, now *appsv1.DeploymentStatus) bool {
	return now.UpdatedReplicas > before.UpdatedReplicas || now.Replicas-now.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		now.ReadyReplicas > before.ReadyReplicas || now.AvailableReplicas > before.AvailableReplicas
}

// rolloutStatus writes the status during a rollout. The update time of Progressing is the time of
// the last progress, from which the deadline counts.
func (k *Kube) rolloutStatus(d *appsv1.Deployment, newest *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) {
	status, before := k.statusOf(d, newest, old), conditionOf(&d.Status, appsv1.DeploymentProgressing)
	condition := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue}
	switch {
	case status.Replicas == status.UpdatedReplicas && before != nil && before.Reason == reasonAvailable:
	case isComplete(d, &status):
		condition.Reason, condition.Message = reasonAvailable, fmt.Sprintf("ReplicaSet %q has successfully progressed.", newest.Name)
		k.setCondition(&status, condition)
	case progressed(&d.Status, &status):
		condition.Reason, condition.Message = "ReplicaSetUpdated", fmt.Sprintf("ReplicaSet %q is progressing.", newest.Name)
		condition.LastUpdateTime, condition.LastTransitionTime = at(k.Store.Now()), at(k.Store.Now())
		if before != nil && before.Status == condition.Status {
			condition.LastTransitionTime = before.LastTransitionTime
		}
		status.Conditions = append(without(status.Conditions, condition.Type), condition)
	case k.isTimedOut(d, before):
		condition.Status, condition.Reason = corev1.ConditionFalse, reasonTimedOut
		condition.Message = fmt.Sprintf("ReplicaSet %q has timed out progressing.", newest.Name)
		k.setCondition(&status, condition)
	}
	k.writeStatus(d, status)
}

// isTimedOut reports whether the deadline of a rollout has passed since its last progress.
func (k *Kube) isTimedOut(d *appsv1.Deployment, before *appsv1.DeploymentCondition) bool {
	if before == nil || before.Reason == reasonAvailable {
		return false
	}
	deadline := before.LastUpdateTime.Add(time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second)
	if before.Reason != reasonTimedOut && !deadline.Before(k.Store.Now()) {
		k.after(deadline.Add(time.Second))
		return false
	}
	return true
}

// writeStatus writes a changed status.
func (k *Kube) writeStatus(d *appsv1.Deployment, status appsv1.DeploymentStatus) {
	if equality.Semantic.DeepEqual(d.Status, status) {
		return
	}
	changed := d.DeepCopy()
	k.refresh(changed)
	changed.Status = status
	k.write(storage.Deployments, changed, "status")
}
