package controller

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
	"github.com/example/nginx-operator/internal/apply"
)

// computeStatus returns the status of a MyApp from its Deployment (nil where it has none) and the error of the writes. From
// the status that the object has it takes over only the time of the last transition.
func computeStatus(app *v1alpha1.MyApp, deployment *appsv1.Deployment, applyErr error) v1alpha1.MyAppStatus {
	status := v1alpha1.MyAppStatus{
		ObservedGeneration: app.Generation,
		Selector:           labels.SelectorFromSet(selector(app.Name)).String(),
	}
	if deployment != nil {
		status.Replicas, status.ReadyReplicas = deployment.Status.Replicas, deployment.Status.ReadyReplicas
	}
	ready := readyCondition(replicas(app), deployment, applyErr)
	ready.ObservedGeneration = app.Generation
	if before := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ConditionReady); before != nil {
		status.Conditions = []metav1.Condition{*before}
	}
	meta.SetStatusCondition(&status.Conditions, ready)
	return status
}

func readyCondition(desired int32, deployment *appsv1.Deployment, applyErr error) metav1.Condition {
	no := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	switch {
	case apply.IsNotOurs(applyErr) != nil:
		return no(v1alpha1.ReasonNameConflict, applyErr.Error())
	case applyErr != nil:
		return no(v1alpha1.ReasonAPIError, applyErr.Error())
	case deployment == nil || deployment.Status.ObservedGeneration < deployment.Generation:
		return no(v1alpha1.ReasonRolloutInProgress, "the Deployment was changed, its rollout begins")
	}
	count := deployment.Status
	message := fmt.Sprintf("%d of %d replicas are ready, %d are up to date", count.ReadyReplicas, desired, count.UpdatedReplicas)
	if count.Replicas != desired || count.UpdatedReplicas != desired || count.AvailableReplicas != desired {
		return no(v1alpha1.ReasonRolloutInProgress, message)
	}
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllReplicasReady, Message: message}
}
