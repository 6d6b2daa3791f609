package health

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
)

// ended returns the status of a container that ended with an exit code and a log, and now has
// another state.
func ended(restarts int32, state corev1.ContainerState, code int32, log string) corev1.ContainerStatus {
	last := &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: log}
	return corev1.ContainerStatus{RestartCount: restarts, State: state, LastTerminationState: corev1.ContainerState{Terminated: last}}
}

// started returns the status of a container that has passed its startup probe since.
func started(status corev1.ContainerStatus) corev1.ContainerStatus {
	status.Started = ptr.To(true)
	return status
}

// TestPodFailure verifies which states of a container are failures, and the messages about them.
func TestPodFailure(t *testing.T) {
	const (
		stamp     = "2026/01/02 03:04:05 [emerg] 7#7: "
		bind      = "line\n" + stamp + "bind() to 0.0.0.0:80 failed (13: Permission denied)\n" + stamp + "still could not bind()\nlast"
		duplicate = `"root" directive is duplicate in /etc/nginx-operator/servers.conf:14`
	)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	backOff := fixture.Waiting("CrashLoopBackOff", "").State
	first := corev1.ContainerStatus{
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: stamp + duplicate}},
	}
	ready := ended(3, running, 1, bind)
	ready.Ready = true
	noFile := `open() "/etc/nginx/mime.types" failed (2: No such file or directory) in /etc/nginx-operator/nginx.conf:12`
	oom := corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	var messages strings.Builder
	for _, test := range []struct {
		name   string
		status corev1.ContainerStatus
		reason string
	}{
		{"a container starts", fixture.Waiting("ContainerCreating", ""), ""},
		{"a registry does not answer", fixture.Waiting("ErrImagePull", "no such host"), v1alpha2.ReasonImagePullFailed},
		{
			"the same, in back-off", fixture.Waiting("ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: no such host`),
			v1alpha2.ReasonImagePullFailed,
		},
		{"the kubelet gives no message", fixture.Waiting("InvalidImageName", ""), v1alpha2.ReasonImagePullFailed},
		{
			"an image runs as root", fixture.Waiting("CreateContainerConfigError",
				`container has runAsNonRoot and image will run as root (pod: "web-1_shop(uid)", container: nginx)`),
			v1alpha2.ReasonContainerConfigError,
		},
		{
			"the caches of a kubelet are not filled",
			fixture.Waiting("CreateContainerConfigError", "failed to sync secret cache: timed out waiting for the condition"),
			v1alpha2.ReasonContainerConfigError,
		},

		{"a first crash", ended(1, running, 1, bind), ""},
		{"crashes, in back-off", ended(3, backOff, 1, bind), v1alpha2.ReasonCrashLoop},
		{"crashes, between two of them", ended(3, running, 1, bind), v1alpha2.ReasonCrashLoop},
		{"crashes, and it recovered", ready, ""},
		{"crashes long ago", started(ended(3, running, 1, bind)), ""},
		{
			"the memory limit is too low",
			corev1.ContainerStatus{RestartCount: 2, State: corev1.ContainerState{Terminated: &oom}},
			v1alpha2.ReasonCrashLoop,
		},

		{"nginx refuses spec.config, at the first start", first, v1alpha2.ReasonInvalidConfiguration},
		{
			"the same, between two starts", ended(1, running, 1, "nginx: [emerg] "+duplicate+"\n"),
			v1alpha2.ReasonInvalidConfiguration,
		},
		{
			"the same, in back-off", ended(5, backOff, 1, "nginx: [emerg] "+duplicate+"\n"+stamp+duplicate),
			v1alpha2.ReasonInvalidConfiguration,
		},
		{"the same, long ago", started(ended(1, running, 1, stamp+duplicate)), ""},
		{"the same, but it was killed", ended(1, running, 137, stamp+duplicate), ""},
		{
			"nginx refuses spec.nginx.events",
			ended(1, running, 1, stamp+`invalid event type "kqueue" in /etc/nginx-operator/events.conf:1`), v1alpha2.ReasonInvalidConfiguration,
		},
		{
			"a module is missing",
			ended(1, running, 1, stamp+`dlopen() "/etc/nginx/modules/a.so" failed (a.so: cannot open shared object file: `+
				`No such file or directory) in /etc/nginx-operator/modules.conf:2`),
			v1alpha2.ReasonInvalidConfiguration,
		},
		{"nginx names no line", ended(1, running, 1, stamp+`unknown "nothing" variable`), v1alpha2.ReasonInvalidConfiguration},
		{
			"an unknown host",
			ended(1, running, 1, stamp+`host not found in upstream "app" in /etc/nginx-operator/servers.conf:3`),
			v1alpha2.ReasonInvalidConfiguration,
		},
		{
			"a file of the user's does not exist", ended(1, running, 1,
				stamp+`open() "/etc/nginx/x" failed (2: No such file or directory) in /etc/nginx-operator/servers.conf:3`),
			v1alpha2.ReasonInvalidConfiguration,
		},
		{
			"an error in a file of the image",
			ended(1, running, 1, stamp+`unknown directive "a" in /etc/nginx/snippets/a.conf:3`),
			v1alpha2.ReasonInvalidConfiguration,
		},
		{"an image without a file that nginx.conf includes", ended(2, backOff, 1, stamp+noFile), v1alpha2.ReasonCrashLoop},
		{
			"a long line", ended(1, running, 1, stamp+`unknown directive "`+strings.Repeat("\U0001F600", 500)),
			v1alpha2.ReasonInvalidConfiguration,
		},
	} {
		found := PodFailure(fixture.NewPod(test.status))
		switch {
		case found == nil && test.reason != "", found != nil && found.Reason != test.reason:
			t.Errorf("%s: %+v, want %q", test.name, found, test.reason)
		case found != nil:
			addMessage(&messages, test.name, found)
		}
	}

	fixture.Golden(t, "messages-pods.txt", messages.String())
}

// addMessage adds a situation and the failure that it causes to the text of a golden file.
func addMessage(messages *strings.Builder, situation string, reported *failure.Failure) {
	fmt.Fprintf(messages, "# %s\n%s: %s\n\n", situation, reported.Reason, reported.Message)
}

// TestKubeletErrorsThatPass verifies that an error of a kubelet that waits for its caches is
// temporary. Its message is complete, even if the Pod may see a Secret.
func TestKubeletErrorsThatPass(t *testing.T) {
	for message, passes := range map[string]bool{
		"failed to sync secret cache: timed out waiting for the condition":             true,
		"failed to sync configmap cache: timed out waiting for the condition":          true,
		`object "shop"/"web-tls" not registered`:                                       true,
		"services have not yet been read at least once, cannot construct envvars":      true,
		"context deadline exceeded":                                                    true,
		`secret "web-tls" not found`:                                                   false,
		"container has runAsNonRoot and image will run as root":                        false,
		`exec: "failed to sync secret cache: timed out waiting for the condition"`:     false,
		"failed to sync secret cache: timed out waiting for the condition; hunter2":    false,
		"couldn't find key failed to sync secret cache: timed out in Secret shop/web ": false,
	} {
		t.Run(message, func(t *testing.T) {
			status := fixture.Waiting("CreateContainerConfigError", message+` (pod: "web-1_shop(uid)", container: nginx)`)
			for name, pod := range map[string]*corev1.Pod{"public": fixture.NewPod(status), "with a Secret": seeing(secretVolume, "nginx", status)} {
				found := PodFailure(pod)
				if found == nil || found.Reason != v1alpha2.ReasonContainerConfigError || found.CanPass() != passes {
					t.Fatalf("%s: %+v, want one that can pass: %t", name, found, passes)
				}
				if want := `cannot start container "nginx": ` + message + kubeletRetries; passes && found.Message != want {
					t.Errorf("%s: reported %q, want %q", name, found.Message, want)
				}
			}
		})
	}
}

// TestPodFailureOfInitContainers verifies that the failure of an init container or sidecar has the
// container's name. A short run between two crashes is not a recovery.
func TestPodFailureOfInitContainers(t *testing.T) {
	const refused = "nginx: [emerg] unknown directive \"a\" in /etc/nginx-operator/servers.conf:3"
	since := func(ago time.Duration) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-ago))}}
	}
	sidecar := func(status corev1.ContainerStatus) corev1.ContainerStatus {
		status.Ready, status.Started = true, ptr.To(true)
		return status
	}
	succeeded := ended(3, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}, 1, "")
	succeeded.Ready = true
	crash := &failure.Failure{
		Reason:  v1alpha2.ReasonCrashLoop,
		Message: `container "make" keeps crashing with exit code 1 (Error): no repository`,
	}
	for name, test := range map[string]struct {
		status corev1.ContainerStatus
		want   *failure.Failure
	}{
		"starting": {status: fixture.Waiting("PodInitializing", "")},
		"no image": {fixture.Waiting("ErrImagePull", "not found"), &failure.Failure{
			Reason: v1alpha2.ReasonImagePullFailed, Message: `cannot pull image "example.com/make:1" of container "make": not found`,
		}},
		"no Secret": {fixture.Waiting("CreateContainerConfigError", `secret "git" not found`), &failure.Failure{
			Reason: v1alpha2.ReasonContainerConfigError, Message: `cannot start container "make": secret "git" not found`,
		}},
		"first crash": {status: ended(1, since(0), 1, "no repository")},
		"crash loop":  {ended(3, fixture.Waiting("CrashLoopBackOff", "").State, 1, "no repository"), crash},
		"tries again": {ended(3, since(time.Hour), 1, "no repository"), crash},
		"words of nginx": {ended(3, since(time.Hour), 1, refused), &failure.Failure{
			Reason:  v1alpha2.ReasonCrashLoop,
			Message: `container "make" keeps crashing with exit code 1 (Error): [emerg] unknown directive "a" in /etc/nginx-operator/servers.conf:3`,
		}},
		"succeeded":               {status: succeeded},
		"sidecar runs":            {status: sidecar(corev1.ContainerStatus{State: since(0)})},
		"sidecar between two":     {sidecar(ended(3, since(time.Second), 1, "no repository")), crash},
		"sidecar crashed before":  {status: sidecar(ended(3, since(time.Minute), 1, "no repository"))},
		"sidecar crashes forever": {ended(9, fixture.Waiting("CrashLoopBackOff", "").State, 1, "no repository"), crash},
	} {
		t.Run(name, func(t *testing.T) {
			pod := fixture.NewPod(fixture.Waiting("PodInitializing", ""))
			test.status.Name, test.status.Image = "make", "example.com/make:1"
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "before", Ready: true}, test.status}
			if diff := cmp.Diff(test.want, PodFailure(pod), withoutEvidence); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// withoutEvidence ignores what TestRolloutFailure verifies.
var withoutEvidence = cmpopts.IgnoreFields(failure.Failure{}, "Certain", "Final")
