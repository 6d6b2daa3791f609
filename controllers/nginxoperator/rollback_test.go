package nginxoperator

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// What is certain is a failure at once; all else is one when the deadline of this rollout has passed, and of no earlier one.
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
		"no such image":            {status: waiting("ErrImagePull", "nginx:none: not found"), want: v1alpha2.ReasonImagePullFailed},
		"registry does not answer": {status: waiting("ErrImagePull", "dial tcp: i/o timeout")},
		"registry does not answer for long": {
			status: waiting("ErrImagePull", "dial tcp: i/o timeout"), exceeded: began.Add(time.Minute), want: v1alpha2.ReasonImagePullFailed,
		},
		"deadline of an earlier rollout": {exceeded: began.Add(-time.Minute)},
		"deadline":                       {exceeded: began.Add(time.Minute), want: v1alpha2.ReasonProgressDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := newDeployment(2)
			if !test.exceeded.IsZero() {
				deployment.Status.Conditions = []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, LastUpdateTime: metav1.NewTime(test.exceeded),
				}}
			}
			got := ""
			if found := rolloutFailure(deployment, []*corev1.Pod{newPod(test.status)}, began); found != nil {
				got = found.reason
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// Only what served with at least one replica is good, and it keeps the time at which it first did.
func TestLastGood(t *testing.T) {
	object := newObject()
	result := newOutcome(t, object)
	rolling := func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }
	for name, state := range map[string]observed{
		"no Deployment": {}, "scaled to zero": {deployment: newDeployment(0)}, "rolling": {deployment: newDeployment(2, rolling)},
	} {
		if got := lastGood(object, state, result); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	complete := observed{deployment: newDeployment(2)}
	first := lastGood(object, complete, result)
	if first == nil || first.Revision != result.applied.revision.Name || first.Image != testImage ||
		first.ConfigHash == "" || first.Time.IsZero() {
		t.Fatalf("%+v", first)
	}
	first.Time = metav1.NewTime(time.Unix(1, 0))
	object.Status.LastGoodRevision = first
	if again := lastGood(object, complete, result); *again != *first {
		t.Errorf("%+v, want %+v", again, first)
	}
	object.Spec.Image = "nginx:other"
	if next := lastGood(object, complete, newOutcome(t, object)); next.Revision == first.Revision || next.Image != "nginx:other" {
		t.Errorf("%+v", next)
	}
}

// What was taken back is remembered for as long as the object asks for it, and no more of it than the schema takes.
func TestFailedRevisions(t *testing.T) {
	object := newObject()
	result := newOutcome(t, object)
	names := func() (out []string) {
		for _, failed := range failedRevisions(object, result) {
			out = append(out, failed.Revision)
		}
		return out
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		object.Status.FailedRevisions = append(object.Status.FailedRevisions, v1alpha2.FailedRevision{Revision: name})
	}
	result.candidates = nil
	result.failed = &v1alpha2.FailedRevision{Revision: "e"}
	if got := names(); !slices.Equal(got, []string{"b", "c", "d", "e"}) {
		t.Errorf("blocked: %v", got)
	}
	result.candidates, result.failed = []string{"b", "d"}, nil
	if got := names(); !slices.Equal(got, []string{"b", "d"}) {
		t.Errorf("asked for b and d: %v", got)
	}
	object.Spec.Paused = true
	if got := names(); len(got) != 4 {
		t.Errorf("paused: %v", got)
	}
}

// What was tried is told by what is new, and cannot make the message long.
func TestTried(t *testing.T) {
	object := newObject()
	applied := newOutcome(t, object).applied
	good := &v1alpha2.GoodRevision{Image: applied.in.image, ConfigHash: applied.in.config.hash}
	if got := tried(applied, good); got != "generation 3 (other Pods)" {
		t.Error(got)
	}
	applied.in.image, good.ConfigHash = strings.Repeat("x", 512), "other"
	if got := tried(applied, good); !strings.Contains(got, "another configuration") || len(got) > 400 {
		t.Error(got)
	}
}
