package kube

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/test/simulation/storage"
)

func conditionOf(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == kind {
			return d.Status.Conditions[i].DeepCopy()
		}
	}
	return nil
}

// deploymentConditions returns Available and Progressing.
func (k *Kube) deploymentConditions(
	d *appsv1.Deployment, status *appsv1.DeploymentStatus, newest *appsv1.ReplicaSet,
) []appsv1.DeploymentCondition {
	_, unavailable := boundsOf(d)
	available := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable",
	}
	if status.AvailableReplicas >= *d.Spec.Replicas-unavailable {
		available.Status, available.Reason = corev1.ConditionTrue, "MinimumReplicasAvailable"
	}
	return []appsv1.DeploymentCondition{k.stamped(d, available, false), k.progressing(d, status, newest)}
}

// progressing returns the Progressing condition. Its update time is the time of the last progress,
// from which the deadline counts.
func (k *Kube) progressing(d *appsv1.Deployment, status *appsv1.DeploymentStatus, newest *appsv1.ReplicaSet) appsv1.DeploymentCondition {
	before := conditionOf(d, appsv1.DeploymentProgressing)
	out := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue}
	want := *d.Spec.Replicas
	complete := status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want
	progressed := status.UpdatedReplicas > d.Status.UpdatedReplicas || status.ReadyReplicas > d.Status.ReadyReplicas ||
		status.AvailableReplicas > d.Status.AvailableReplicas ||
		status.Replicas-status.UpdatedReplicas < d.Status.Replicas-d.Status.UpdatedReplicas
	switch {
	case d.Spec.Paused:
		out.Status, out.Reason = corev1.ConditionUnknown, "DeploymentPaused"
		return k.stamped(d, out, false)
	case newest != nil && complete:
		out.Reason, out.Message = "NewReplicaSetAvailable", fmt.Sprintf("ReplicaSet %q has successfully progressed.", newest.Name)
		return k.stamped(d, out, false)
	case progressed || newest == nil || before == nil || before.Status == corev1.ConditionUnknown ||
		before.Message != updating(newest) && before.Message != late(newest):
		out.Reason, out.Message = "ReplicaSetUpdated", updating(newest)
		return k.stamped(d, out, true)
	}
	deadline := before.LastUpdateTime.Add(time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second)
	if before.Status == corev1.ConditionFalse {
		return *before
	}
	if k.Store.Now().Before(deadline) {
		k.after(deadline)
		return *before
	}
	out.Status, out.Reason, out.Message = corev1.ConditionFalse, "ProgressDeadlineExceeded", late(newest)
	return k.stamped(d, out, true)
}

// reportRefusal writes why there is no new ReplicaSet. Like the real controller, it changes nothing
// else of the status, not even the observed generation.
func (k *Kube) reportRefusal(d *appsv1.Deployment, message string) {
	refused := k.stamped(d, appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ReplicaSetCreateError", Message: message,
	}, false)
	before := conditionOf(d, appsv1.DeploymentProgressing)
	if before != nil && *before == refused {
		return
	}
	d.Status.Conditions = slices.DeleteFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == refused.Type })
	d.Status.Conditions = append(d.Status.Conditions, refused)
	k.write(storage.Deployments, d, "status")
}

func updating(rs *appsv1.ReplicaSet) string {
	if rs == nil {
		return ""
	}
	return fmt.Sprintf("ReplicaSet %q is progressing.", rs.Name)
}

func late(rs *appsv1.ReplicaSet) string {
	return fmt.Sprintf("ReplicaSet %q has timed out progressing.", rs.Name)
}

// stamped sets the times of a condition. They stay if the condition does not change and touch is
// false.
func (k *Kube) stamped(d *appsv1.Deployment, condition appsv1.DeploymentCondition, touch bool) appsv1.DeploymentCondition {
	now := at(k.Store.Now())
	condition.LastUpdateTime, condition.LastTransitionTime = now, now
	before := conditionOf(d, condition.Type)
	if before == nil {
		return condition
	}
	if before.Status == condition.Status {
		condition.LastTransitionTime = before.LastTransitionTime
	}
	if before.Status == condition.Status && before.Reason == condition.Reason && before.Message == condition.Message && !touch {
		return *before
	}
	return condition
}
