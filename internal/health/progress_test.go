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

// TestStatusChanged verifies which changes of a Deployment's status start a reconcile. A deadline
// that passes again is one, because RolloutFailure ignores the deadline of an earlier rollout.
func TestStatusChanged(t *testing.T) {
	progressing := func(status corev1.ConditionStatus, reason string, second int64) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{
			Type: appsv1.DeploymentProgressing, Status: status, Reason: reason,
			LastUpdateTime: metav1.NewTime(time.Unix(second, 0)),
		}
	}
	observed := func(all, updated, ready, available int32, has ...appsv1.DeploymentCondition) appsv1.DeploymentStatus {
		return appsv1.DeploymentStatus{
			ObservedGeneration: 7, Replicas: all, UpdatedReplicas: updated, ReadyReplicas: ready,
			AvailableReplicas: available, Conditions: has,
		}
	}
	refused := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota: a"}
	unavailable := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse}
	exceeded := func(second int64) appsv1.DeploymentCondition {
		return progressing(corev1.ConditionFalse, "ProgressDeadlineExceeded", second)
	}
	available := progressing(corev1.ConditionTrue, "NewReplicaSetAvailable", 1)
	isTrue, nothing := corev1.ConditionTrue, appsv1.DeploymentStatus{}
	for name, test := range map[string]struct {
		replicas    int32
		before, now appsv1.DeploymentStatus
		want        bool
	}{
		"no Pods, not observed yet": {0, nothing, observed(0, 0, 0, 0), false},
		"no Pods, a condition":      {0, observed(0, 0, 0, 0), observed(0, 0, 0, 0, available), false},
		"Pods, not observed yet":    {2, nothing, observed(0, 0, 0, 0), true},
		"the first Pods":            {2, observed(0, 0, 0, 0), observed(2, 2, 0, 0), true},
		"a Pod is ready":            {2, observed(2, 0, 0, 0), observed(2, 0, 1, 0), true},
		"all are available":         {1, observed(1, 1, 1, 0), observed(1, 1, 1, 1), true},
		"what repeats the counts": {
			2, observed(0, 0, 0, 0, progressing(isTrue, "NewReplicaSetCreated", 1)),
			observed(0, 0, 0, 0, progressing(isTrue, "ReplicaSetUpdated", 2), unavailable), false,
		},
		"the deadline passes":       {1, observed(0, 0, 0, 0), observed(0, 0, 0, 0, exceeded(1)), true},
		"the deadline passes again": {1, observed(1, 1, 1, 1, exceeded(1)), observed(1, 1, 1, 1, exceeded(9)), true},
		"Pods are refused":          {1, observed(0, 0, 0, 0), observed(0, 0, 0, 0, refused), true},
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
