package health

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/internal/fixture"
)

func TestStatusChanged(t *testing.T) {
	progressing := func(status corev1.ConditionStatus, reason, message string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{
			Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, Message: message, LastUpdateTime: metav1.NewTime(time.Unix(1, 0)),
		}
	}
	refused := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota: a"}
	for name, test := range map[string]struct {
		replicas    int32
		before, now appsv1.DeploymentStatus
		want        bool
	}{
		"no Pods, not observed yet": {0, appsv1.DeploymentStatus{}, appsv1.DeploymentStatus{ObservedGeneration: 7}, false},
		"no Pods, a condition": {
			0,
			appsv1.DeploymentStatus{ObservedGeneration: 7},
			appsv1.DeploymentStatus{ObservedGeneration: 7, Conditions: []appsv1.DeploymentCondition{
				progressing(corev1.ConditionTrue, "NewReplicaSetAvailable", ""),
			}},
			false,
		},
		"Pods, not observed yet": {2, appsv1.DeploymentStatus{}, appsv1.DeploymentStatus{ObservedGeneration: 7}, true},
		"the first Pods": {
			2, appsv1.DeploymentStatus{ObservedGeneration: 7}, appsv1.DeploymentStatus{ObservedGeneration: 7, Replicas: 2, UpdatedReplicas: 2}, true,
		},
		"a Pod is ready": {
			2,
			appsv1.DeploymentStatus{ObservedGeneration: 7, Replicas: 2},
			appsv1.DeploymentStatus{ObservedGeneration: 7, Replicas: 2, ReadyReplicas: 1},
			true,
		},
		"all are available": {
			1,
			appsv1.DeploymentStatus{ObservedGeneration: 7, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1},
			appsv1.DeploymentStatus{ObservedGeneration: 7, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1},
			true,
		},
		"what repeats the counts": {
			2,
			appsv1.DeploymentStatus{ObservedGeneration: 7, UnavailableReplicas: 2, Conditions: []appsv1.DeploymentCondition{
				progressing(corev1.ConditionTrue, "NewReplicaSetCreated", "a"),
			}},
			appsv1.DeploymentStatus{ObservedGeneration: 7, Conditions: []appsv1.DeploymentCondition{
				progressing(corev1.ConditionTrue, "ReplicaSetUpdated", "b"),
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable"},
			}},
			false,
		},
		"the deadline passes": {
			1,
			appsv1.DeploymentStatus{ObservedGeneration: 7},
			appsv1.DeploymentStatus{ObservedGeneration: 7, Conditions: []appsv1.DeploymentCondition{
				progressing(corev1.ConditionFalse, "ProgressDeadlineExceeded", "a"),
			}},
			true,
		},
		"Pods are refused": {
			1,
			appsv1.DeploymentStatus{ObservedGeneration: 7},
			appsv1.DeploymentStatus{ObservedGeneration: 7, Conditions: []appsv1.DeploymentCondition{refused}},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := fixture.NewDeployment(test.replicas, func(d *appsv1.Deployment) {
				d.Spec.Replicas, d.Status = ptr.To(test.replicas), test.now
			})
			if got := StatusChanged(deployment, test.before); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// TestDeadlineOfALaterRollout verifies that a deadline that passes again counts, because
// RolloutFailure ignores the deadline of an earlier rollout.
func TestDeadlineOfALaterRollout(t *testing.T) {
	passed := fixture.NewDeployment(1, func(d *appsv1.Deployment) {
		d.Status.Conditions[0].Status, d.Status.Conditions[0].LastUpdateTime = corev1.ConditionFalse, metav1.NewTime(time.Unix(1, 0))
	})
	again := passed.DeepCopy()
	again.Status.Conditions[0].LastUpdateTime = metav1.NewTime(time.Unix(9, 0))
	if !StatusChanged(again, passed.Status) {
		t.Error("no change")
	}
}
