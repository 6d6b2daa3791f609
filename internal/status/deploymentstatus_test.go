package status

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/live"
)

// TestUnchangedDeploymentStatus verifies that a status of the Deployment that starts no reconcile
// would not have changed the status of the object.
func TestUnchangedDeploymentStatus(t *testing.T) {
	const draws, least = 20000, 100
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a fixed seed repeats a failure
	condition := func(conditionType appsv1.DeploymentConditionType, reasons ...string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{
			Type: conditionType, Status: []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}[random.IntN(2)],
			Reason: reasons[random.IntN(len(reasons))], Message: []string{"a", "exceeded quota: b"}[random.IntN(2)],
			LastUpdateTime: metav1.NewTime(time.Unix(random.Int64N(2), 0)),
		}
	}
	draw := func(replicas int32) appsv1.DeploymentStatus {
		count := func() int32 { return random.Int32N(replicas + 1) }
		out := appsv1.DeploymentStatus{
			ObservedGeneration: 6 + random.Int64N(2),
			Replicas:           count(), UpdatedReplicas: count(), ReadyReplicas: count(), AvailableReplicas: count(),
		}
		for _, one := range []appsv1.DeploymentCondition{
			condition(appsv1.DeploymentProgressing, "NewReplicaSetAvailable", "ReplicaSetUpdated", "ProgressDeadlineExceeded"),
			condition(appsv1.DeploymentAvailable, "MinimumReplicasAvailable"), condition(appsv1.DeploymentReplicaFailure, "FailedCreate"),
		} {
			if random.IntN(2) == 0 {
				out.Conditions = append(out.Conditions, one)
			}
		}
		return out
	}
	object := fixture.NewObject()
	outcome := newOutcome(t, object)
	unchanged := 0
	for range draws {
		replicas := random.Int32N(3)
		before, now := fixture.NewDeployment(replicas), fixture.NewDeployment(replicas)
		before.Status, now.Status = draw(replicas), draw(replicas)
		if health.StatusChanged(now, before.Status) {
			continue
		}
		unchanged++
		diff := cmp.Diff(statusOf(object, live.Observed{Deployment: before}, outcome),
			statusOf(object, live.Observed{Deployment: now}, outcome), cmpopts.IgnoreTypes(metav1.Time{}))
		if diff != "" {
			t.Fatalf("from %+v to %+v:\n%s", before.Status, now.Status, diff)
		}
	}
	if unchanged < least {
		t.Errorf("%d of %d draws are unchanged, want at least %d", unchanged, draws, least)
	}
}
