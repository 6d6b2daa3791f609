package health

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/internal/failure"
)

// report is what this package, and a status, read of the status of a Deployment.
type report struct {
	Progress                                 Progress
	RollsOut                                 bool
	Failures                                 []failure.Failure
	Replicas, ReadyReplicas, UpdatedReplicas int32
	// Stalled is the time at which the progress deadline passed. An earlier rollout may have done
	// so.
	Stalled metav1.Time
}

func reportOf(deployment *appsv1.Deployment) report {
	status := &deployment.Status
	out := report{
		Progress: ProgressOf(deployment), RollsOut: RollsOut(deployment), Failures: Failures(deployment, nil),
		Replicas: status.Replicas, ReadyReplicas: status.ReadyReplicas, UpdatedReplicas: status.UpdatedReplicas,
	}
	if progressing := deploymentCondition(deployment, appsv1.DeploymentProgressing); progressing != nil &&
		progressing.Status == corev1.ConditionFalse {
		out.Stalled = progressing.LastUpdateTime
	}
	if out.Progress.Complete {
		out.Progress.Reason = "" // no condition has the reason of a complete rollout
	}
	return out
}

// StatusChanged reports whether an earlier status of a Deployment had other consequences than the
// present one, for the functions of this package and for the counts in a status. The Deployment
// controller also changes times, and conditions that repeat the counts.
func StatusChanged(deployment *appsv1.Deployment, before appsv1.DeploymentStatus) bool {
	earlier := *deployment
	earlier.Status = before
	return !equality.Semantic.DeepEqual(reportOf(&earlier), reportOf(deployment))
}
