package health

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
)

// TestRolloutFailure verifies that a persistent failure counts immediately, and any other failure
// after the progress deadline of this rollout. The deadline of an earlier rollout does not count.
func TestRolloutFailure(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	verdict := corev1.ContainerStatus{LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 1, Message: `2026/01/01 00:00:00 [emerg] 7#7: host not found in upstream "api" in /etc/nginx-operator/servers.conf:3`,
	}}}
	for name, test := range map[string]struct {
		status   corev1.ContainerStatus
		exceeded time.Time
		want     string
	}{
		"nothing is wrong":         {},
		"nginx's verdict":          {status: verdict, want: v1alpha2.ReasonInvalidConfiguration},
		"no such image":            {status: fixture.Waiting("ErrImagePull", "nginx:none: not found"), want: v1alpha2.ReasonImagePullFailed},
		"registry does not answer": {status: fixture.Waiting("ErrImagePull", "dial tcp: i/o timeout")},
		"registry does not answer for long": {
			status: fixture.Waiting("ErrImagePull", "dial tcp: i/o timeout"), exceeded: began.Add(time.Minute), want: v1alpha2.ReasonImagePullFailed,
		},
		"deadline of an earlier rollout": {exceeded: began.Add(-time.Minute)},
		"deadline":                       {exceeded: began.Add(time.Minute), want: v1alpha2.ReasonProgressDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := fixture.NewDeployment(2)
			if !test.exceeded.IsZero() {
				deployment.Status.Conditions = []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, LastUpdateTime: metav1.NewTime(test.exceeded),
				}}
			}
			got := ""
			if found := RolloutFailure(deployment, []*corev1.Pod{fixture.NewPod(test.status)}, began); found != nil {
				got = found.Reason
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
