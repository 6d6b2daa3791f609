package controller

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
)

func TestComputeStatus(t *testing.T) {
	app := &v1alpha1.MyApp{ObjectMeta: metav1.ObjectMeta{Name: "app", Generation: 2}, Spec: v1alpha1.MyAppSpec{Replicas: ptr.To[int32](2)}}
	observed := func(generation int64, replicas, ready, updated int32) appsv1.DeploymentStatus {
		return appsv1.DeploymentStatus{
			ObservedGeneration: generation, Replicas: replicas, ReadyReplicas: ready, AvailableReplicas: ready, UpdatedReplicas: updated,
		}
	}
	for _, test := range []struct {
		observed appsv1.DeploymentStatus
		err      error
		want     string
	}{
		{observed(1, 1, 0, 0), nil, "1 False RolloutInProgress the rollout of the Deployment has not started"},
		{observed(3, 3, 2, 1), nil, "3 False RolloutInProgress 2 of 2 replicas ready, 1 updated"},
		{observed(3, 2, 2, 2), nil, "2 True AllReplicasReady 2 of 2 replicas ready, 2 updated"},
		{observed(0, 2, 0, 0), errors.New("quota"), "2 False APIError quota"},
		{observed(0, 2, 0, 0), fmt.Errorf("failed: %w", errNotControlled), "0 False NameConflict failed: " + errNotControlled.Error()},
	} {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Status: test.observed}
		status := computeStatus(app, deployment, test.err)
		ready := status.Conditions[0]
		got := fmt.Sprintf("%d %s %s %s", status.Replicas, ready.Status, ready.Reason, ready.Message)
		if got != test.want || status.ObservedGeneration != 2 || ready.ObservedGeneration != 2 {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
