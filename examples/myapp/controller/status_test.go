package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
	"github.com/example/nginx-operator/internal/apply"
)

func labelSet(set map[string]string) labels.Set { return set }

// rolledOut is what the Deployment controller reports.
func rolledOut(replicas, updated, ready int32) *appsv1.Deployment {
	return &appsv1.Deployment{Status: appsv1.DeploymentStatus{
		Replicas: replicas, UpdatedReplicas: updated, ReadyReplicas: ready, AvailableReplicas: ready,
	}}
}

func TestComputeStatus(t *testing.T) {
	behind := rolledOut(3, 3, 3)
	behind.Generation = 2
	for name, test := range map[string]struct {
		deployment      *appsv1.Deployment
		err             error
		replicas, ready int32
		condition       metav1.ConditionStatus
		reason, message string
	}{
		"nothing yet": {nil, nil, 0, 0, metav1.ConditionFalse, v1alpha1.ReasonRolloutInProgress, "the Deployment was changed, its rollout begins"},
		"not seen":    {behind, nil, 3, 3, metav1.ConditionFalse, v1alpha1.ReasonRolloutInProgress, "the Deployment was changed, its rollout begins"},
		"starting":    {rolledOut(3, 3, 1), nil, 3, 1, metav1.ConditionFalse, v1alpha1.ReasonRolloutInProgress, "1 of 3 replicas are ready, 3 are up to date"},
		"old Pods":    {rolledOut(3, 2, 3), nil, 3, 3, metav1.ConditionFalse, v1alpha1.ReasonRolloutInProgress, "3 of 3 replicas are ready, 2 are up to date"},
		"one too many": {rolledOut(4, 3, 4), nil, 4, 4, metav1.ConditionFalse, v1alpha1.ReasonRolloutInProgress,
			"4 of 3 replicas are ready, 3 are up to date"},
		"ready": {rolledOut(3, 3, 3), nil, 3, 3, metav1.ConditionTrue, v1alpha1.ReasonAllReplicasReady, "3 of 3 replicas are ready, 3 are up to date"},
		"name taken": {nil, &apply.NotOurs{Kind: "Deployment", Name: "myapp-sample"}, 0, 0, metav1.ConditionFalse, v1alpha1.ReasonNameConflict,
			`Deployment "myapp-sample" exists already and is not ours (nobody controls it): delete or rename it, or choose another name`},
		"refused": {rolledOut(3, 3, 3), errors.New("no quota"), 3, 3, metav1.ConditionFalse, v1alpha1.ReasonAPIError, "no quota"},
	} {
		t.Run(name, func(t *testing.T) {
			app := sampleApp(t)
			want := v1alpha1.MyAppStatus{
				ObservedGeneration: 1, Replicas: test.replicas, ReadyReplicas: test.ready,
				Selector: "app=myapp,app.kubernetes.io/instance=myapp-sample",
				Conditions: []metav1.Condition{{
					Type: v1alpha1.ConditionReady, Status: test.condition, ObservedGeneration: 1, Reason: test.reason, Message: test.message,
				}},
			}
			got := computeStatus(app, test.deployment, test.err)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A pass over an unchanged object computes the status that it has, down to the time, so nothing is written.
func TestStatusIsStable(t *testing.T) {
	app := sampleApp(t)
	app.Status = computeStatus(app, rolledOut(3, 3, 3), nil)
	app.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Unix(1, 0))
	if diff := cmp.Diff(app.Status, computeStatus(app, rolledOut(3, 3, 3), nil)); diff != "" {
		t.Error(diff)
	}
}
