package health

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
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

// TestPodsThatAreNotCreated verifies that only an answer of the API server counts as a refusal. The
// failure of an admission webhook can pass, and so can a request that was not answered.
func TestPodsThatAreNotCreated(t *testing.T) {
	for message, want := range map[string]failure.Failure{
		`pods "web-5f-abcde" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`: {
			Reason: v1alpha2.ReasonQuotaExceeded, Message: "Pods are forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1",
		},
		`pods "web-5f-abcde" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`: {
			Reason: v1alpha2.ReasonForbidden, Message: `Pods are forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`,
		},
		`admission webhook "images.example.com" denied the request: failed calling webhook of the registry`: {
			Reason:  v1alpha2.ReasonForbidden,
			Message: `admission webhook "images.example.com" denied the request: failed calling webhook of the registry`,
		},
		`Pod "web" is invalid: spec.containers[1].name: Duplicate value: "proxy"`: {
			Reason: v1alpha2.ReasonForbidden, Message: `Pod "web" is invalid: spec.containers[1].name: Duplicate value: "proxy"`,
		},
		`Internal error occurred: failed calling webhook "inject.example.com": failed to call webhook: ` +
			`Post "https://a": context deadline exceeded`: {
			Reason: v1alpha2.ReasonAPIError,
			Message: `failed to create Pods: Internal error occurred: failed calling webhook "inject.example.com": failed to call webhook: ` +
				`Post "https://a": context deadline exceeded; Kubernetes retries, so check the webhook or the API server if it lasts`,
		},
		"etcdserver: request timed out": {
			Reason: v1alpha2.ReasonAPIError,
			Message: "failed to create Pods: etcdserver: request timed out; Kubernetes retries, " +
				"so check the webhook or the API server if it lasts",
		},
	} {
		deployment := fixture.NewDeployment(2)
		deployment.Status.Conditions = append(deployment.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: message,
		})
		if diff := cmp.Diff([]failure.Failure{want}, Failures(deployment, nil)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", message, diff)
		}
	}
}
