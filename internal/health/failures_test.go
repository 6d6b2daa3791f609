package health

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
)

// TestRolloutFailure verifies which failures of Pods count immediately, and that any other failure
// counts after the progress deadline of this rollout. The deadline of an earlier rollout does not
// count. Only what follows from the text of the change is final.
func TestRolloutFailure(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const servers = " in /etc/nginx-operator/servers.conf:3"
	nginx := func(restarts int32, words string) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			RestartCount: restarts,
			State:        fixture.Waiting("CrashLoopBackOff", "").State,
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 1, Message: "2026/01/01 00:00:00 [emerg] 7#7: " + words,
			}},
		}
	}
	unresolved := `host not found in upstream "api"` + servers
	const final, refused = " (final)", v1alpha2.ReasonInvalidConfiguration + " (final)"
	for name, test := range map[string]struct {
		status   corev1.ContainerStatus
		exceeded time.Duration
		paused   bool
		want     string
	}{
		"nothing is wrong":           {},
		"unknown directive":          {status: nginx(0, `unknown directive "a"`+servers), want: refused},
		"unexpected end":             {status: nginx(0, `unexpected end of file, expecting ";" or "}"`+servers), want: refused},
		"wrong place":                {status: nginx(0, `"root" directive is not allowed here`+servers), want: refused},
		"wrong number":               {status: nginx(0, `invalid number of arguments in "root" directive`+servers), want: refused},
		"withheld words":             {status: nginx(0, `unknown "…" variable`), want: refused},
		"host not found":             {status: nginx(0, unresolved)},
		"host not found twice":       {status: nginx(1, unresolved)},
		"host not found three times": {status: nginx(2, unresolved), want: v1alpha2.ReasonInvalidConfiguration},
		"host not found until the deadline": {
			status: nginx(0, unresolved), exceeded: time.Minute, want: v1alpha2.ReasonInvalidConfiguration,
		},
		"two crashes":              {status: nginx(1, "bind() to 0.0.0.0:80 failed (13: Permission denied)")},
		"three crashes":            {status: nginx(2, "bind() to 0.0.0.0:80 failed (13: Permission denied)"), want: v1alpha2.ReasonCrashLoop},
		"no such image":            {status: fixture.Waiting("ErrImagePull", "nginx:none: not found"), want: v1alpha2.ReasonImagePullFailed},
		"registry does not answer": {status: fixture.Waiting("ErrImagePull", "dial tcp: i/o timeout")},
		"registry does not answer for long": {
			status: fixture.Waiting("ErrImagePull", "dial tcp: i/o timeout"), exceeded: time.Minute, want: v1alpha2.ReasonImagePullFailed,
		},
		"the runtime is slow": {status: fixture.Waiting("CreateContainerError", "failed to reserve container name")},
		"the runtime is slow for long": {
			status:   fixture.Waiting("CreateContainerError", "failed to reserve container name"),
			exceeded: time.Minute, want: v1alpha2.ReasonContainerConfigError,
		},
		"deadline of an earlier rollout": {exceeded: -time.Minute},
		"deadline":                       {exceeded: time.Minute, want: v1alpha2.ReasonProgressDeadlineExceeded},
		"paused by hand":                 {status: nginx(9, `unknown directive "a"`+servers), paused: true},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := fixture.NewDeployment(2)
			deployment.Spec.Paused = test.paused
			if test.exceeded != 0 {
				deployment.Status.Conditions = []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, LastUpdateTime: metav1.NewTime(began.Add(test.exceeded)),
				}}
			}
			got := ""
			if found := RolloutFailure(deployment, []*corev1.Pod{fixture.NewPod(test.status)}, began); found != nil {
				got = found.Reason
				if found.Final {
					got += final
				}
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestReplicaSetIsNotCreated verifies that a quota on ReplicaSets is reported as such, although the
// Deployment controller does not observe the generation then, and that it does not fail a rollout.
func TestReplicaSetIsNotCreated(t *testing.T) {
	deployment := fixture.NewDeployment(2)
	deployment.Generation = deployment.Status.ObservedGeneration + 1
	deployment.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ReplicaSetCreateError", LastUpdateTime: metav1.Now(),
		Message: `Failed to create new replica set "web-5f": replicasets.apps "web-5f" is forbidden: exceeded quota: q`,
	}}
	if progress := ProgressOf(deployment); !progress.Rolling {
		t.Errorf("progress is %+v", progress)
	}
	found := Worst(deployment, nil)
	if found == nil || found.Reason != v1alpha2.ReasonQuotaExceeded {
		t.Errorf("found %+v", found)
	}
	if found := RolloutFailure(deployment, nil, time.Time{}); found != nil {
		t.Errorf("failed: %+v", found)
	}
}

// TestPodsThatAreNotCreated verifies that only an answer of the API server counts as a refusal. The
// failure of an admission webhook can pass, and so can a request that was not answered.
func TestPodsThatAreNotCreated(t *testing.T) {
	var messages strings.Builder
	for _, test := range []struct{ name, message, reason string }{
		{
			"a quota is exceeded",
			`pods "web-5f-abcde" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`,
			v1alpha2.ReasonQuotaExceeded,
		},
		{
			"Pod Security refuses the Pods",
			`pods "web-5f-abcde" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`, v1alpha2.ReasonForbidden,
		},
		{
			"an admission webhook denies the Pods",
			`admission webhook "images.example.com" denied the request: failed calling webhook of the registry`, v1alpha2.ReasonForbidden,
		},
		{
			"the Pod is not valid after another webhook has changed it",
			`Pod "web" is invalid: spec.containers[1].name: Duplicate value: "proxy"`, v1alpha2.ReasonForbidden,
		},
		{
			"an admission webhook does not answer",
			`Internal error occurred: failed calling webhook "inject.example.com": failed to call webhook: ` +
				`Post "https://a": context deadline exceeded`, v1alpha2.ReasonAPIError,
		},
		{"the API server does not answer", "etcdserver: request timed out", v1alpha2.ReasonAPIError},
	} {
		deployment := fixture.NewDeployment(2)
		deployment.Status.Conditions = append(deployment.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: test.message,
		})
		failures := Failures(deployment, nil)
		if len(failures) != 1 || failures[0].Reason != test.reason {
			t.Fatalf("%s: %+v", test.name, failures)
		}
		addMessage(&messages, test.name, &failures[0])
	}

	deployment := fixture.NewDeployment(2, func(d *appsv1.Deployment) { d.Spec.Paused, d.Generation = true, 9 })
	failures := Failures(deployment, nil)
	if len(failures) != 1 || failures[0].Reason != v1alpha2.ReasonDeploymentPaused {
		t.Fatalf("paused: %+v", failures)
	}
	addMessage(&messages, "kubectl rollout pause", &failures[0])

	pod := fixture.NewPod(corev1.ContainerStatus{})
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available: 3 Insufficient cpu.",
	}}
	addMessage(&messages, "no node has enough memory or processors", PodFailure(pod))
	pod.Status = fixture.NewPod(fixture.Waiting("ErrImagePull", "no such host")).Status
	pod.Status.ContainerStatuses[0].Name = "ship"
	addMessage(&messages, "the image of a sidecar", PodFailure(pod))

	fixture.Golden(t, "messages.txt", messages.String())
}

// TestProgressMessages verifies the messages about the progress of a rollout.
func TestProgressMessages(t *testing.T) {
	var messages strings.Builder
	for _, test := range []struct {
		name       string
		deployment *appsv1.Deployment
	}{
		{"no Deployment", nil},
		{"a change that the Deployment controller has not seen", fixture.NewDeployment(2, func(d *appsv1.Deployment) { d.Generation = 9 })},
		{"a rollout", fixture.NewDeployment(3, func(d *appsv1.Deployment) { d.Status.UpdatedReplicas, d.Status.ReadyReplicas = 1, 2 })},
		{"a complete rollout", fixture.NewDeployment(2)},
		{"no replicas", fixture.NewDeployment(0, func(d *appsv1.Deployment) { d.Status = appsv1.DeploymentStatus{} })},
	} {
		progress := ProgressOf(test.deployment)
		addMessage(&messages, test.name, &failure.Failure{Reason: progress.Reason, Message: progress.Message})
	}

	fixture.Golden(t, "messages-progress.txt", messages.String())
}
