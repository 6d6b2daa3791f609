package nginxoperator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// ended is a container that ended with this log and whose state now is another.
func ended(restarts int32, state corev1.ContainerState, code int32, log string) corev1.ContainerStatus {
	last := &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: log}
	return corev1.ContainerStatus{RestartCount: restarts, State: state, LastTerminationState: corev1.ContainerState{Terminated: last}}
}

// started is such a container that passed its startup probe since.
func started(status corev1.ContainerStatus) corev1.ContainerStatus {
	status.Started = ptr.To(true)
	return status
}

// What the API server has against the part of a Deployment that the spec says is told as what is wrong with the spec.
func TestApplyFailureOfTheSpec(t *testing.T) {
	pod := field.NewPath("spec", "template", "spec")
	refused := func(errs ...*field.Error) error {
		kind := appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind()
		return fmt.Errorf("failed to create Deployment: %w", apierrors.NewInvalid(kind, "web", errs))
	}
	own, operator := field.Required(pod.Child("volumes"), "lacks one"), pod.Child("tolerations").Index(0).Child("operator")
	for name, test := range map[string]struct {
		err  error
		want failure
	}{
		"the spec": {
			refused(field.Invalid(operator, "Is", "is none"), own, field.Required(pod.Child("nodeSelector"), "lacks one")),
			failure{
				v1alpha2.ReasonInvalidConfiguration,
				`[spec.podTemplate.tolerations[0].operator: Invalid value: "Is": is none, spec.podTemplate.nodeSelector: Required value: lacks one]`,
			},
		},
		"the operator's part": {refused(own), failure{
			v1alpha2.ReasonInvalidChild,
			`failed to create Deployment: Deployment.apps "web" is invalid: spec.template.spec.volumes: Required value: lacks one`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(&test.want, applyFailure(test.err, nil), cmp.AllowUnexported(failure{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPodFailure(t *testing.T) {
	const (
		stamp     = "2026/01/02 03:04:05 [emerg] 7#7: "
		bind      = "line\n" + stamp + "bind() to 0.0.0.0:80 failed (13: Permission denied)\n" + stamp + "still could not bind()\nlast"
		duplicate = `"root" directive is duplicate in /etc/nginx-operator/servers.conf:14`
		loop      = `container "nginx" keeps crashing with exit code 1 (Error): `
	)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	backOff := waiting("CrashLoopBackOff", "").State
	first := corev1.ContainerStatus{
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: stamp + duplicate}},
	}
	ready := ended(3, running, 1, bind)
	ready.Ready = true
	for name, test := range map[string]struct {
		status  corev1.ContainerStatus
		reason  string
		message string
	}{
		"starting": {status: waiting("ContainerCreating", "")},
		"pull error": {
			waiting("ErrImagePull", "no such host"), v1alpha2.ReasonImagePullFailed, `cannot pull image "` + testImage + `": no such host`,
		},
		"back-off": {
			waiting("ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: no such host`),
			v1alpha2.ReasonImagePullFailed, `cannot pull image "` + testImage + `": no such host`,
		},
		"no message": {
			waiting("InvalidImageName", ""), v1alpha2.ReasonImagePullFailed, `cannot pull image "` + testImage + `": InvalidImageName`,
		},
		"root image": {
			waiting("CreateContainerConfigError",
				`container has runAsNonRoot and image will run as root (pod: "web-1_shop(uid)", container: nginx)`),
			v1alpha2.ReasonContainerConfigError, `cannot start container "nginx": container has runAsNonRoot and image will run as root`,
		},

		"first crash": {status: ended(1, running, 1, bind)},
		"crash loop": {
			ended(3, backOff, 1, bind), v1alpha2.ReasonCrashLoop, loop + "[emerg] bind() to 0.0.0.0:80 failed (13: Permission denied)",
		},
		"between two": {
			ended(3, running, 1, bind), v1alpha2.ReasonCrashLoop, loop + "[emerg] bind() to 0.0.0.0:80 failed (13: Permission denied)",
		},
		"recovered":        {status: ready},
		"crashed long ago": {status: started(ended(3, running, 1, bind))},
		"just crashed": {corev1.ContainerStatus{RestartCount: 2, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "OOMKilled",
		}}}, v1alpha2.ReasonCrashLoop, `container "nginx" keeps crashing with exit code 137 (OOMKilled)`},

		"refused at once": {first, v1alpha2.ReasonInvalidConfiguration, `nginx refuses spec.config, line 14: "root" directive is duplicate`},
		"refused, between two": {
			ended(1, running, 1, "nginx: [emerg] "+duplicate+"\n"), v1alpha2.ReasonInvalidConfiguration,
			`nginx refuses spec.config, line 14: "root" directive is duplicate`,
		},
		"refused, in back-off": {
			ended(5, backOff, 1, "nginx: [emerg] "+duplicate+"\n"+stamp+duplicate), v1alpha2.ReasonInvalidConfiguration,
			`nginx refuses spec.config, line 14: "root" directive is duplicate`,
		},
		"refused long ago": {status: started(ended(1, running, 1, stamp+duplicate))},
		"refused without a line": {
			ended(1, running, 1, stamp+`unknown "nothing" variable`), v1alpha2.ReasonInvalidConfiguration,
			`nginx refuses its configuration: unknown "nothing" variable`,
		},
		"unknown host": {
			ended(1, running, 1, stamp+`host not found in upstream "app" in /etc/nginx-operator/servers.conf:3`),
			v1alpha2.ReasonInvalidConfiguration, `nginx refuses spec.config, line 3: host not found in upstream "app"`,
		},
		"file of the user's": {
			ended(1, running, 1, stamp+`open() "/etc/nginx/x" failed (2: No such file or directory) in /etc/nginx-operator/servers.conf:3`),
			v1alpha2.ReasonInvalidConfiguration, `nginx refuses spec.config, line 3: open() "/etc/nginx/x" failed (2: No such file or directory)`,
		},
		"file of the image": {
			ended(1, running, 1, stamp+`unknown directive "a" in /etc/nginx/snippets/a.conf:3`),
			v1alpha2.ReasonInvalidConfiguration, `nginx refuses its configuration: unknown directive "a" in /etc/nginx/snippets/a.conf:3`,
		},
		"image without a file": {
			ended(2, backOff, 1, stamp+`open() "/etc/nginx/mime.types" failed (2: No such file or directory) in /etc/nginx-operator/nginx.conf:12`),
			v1alpha2.ReasonCrashLoop,
			loop + `[emerg] open() "/etc/nginx/mime.types" failed (2: No such file or directory) in /etc/nginx-operator/nginx.conf:12`,
		},
		"killed": {status: ended(1, running, 137, stamp+duplicate)},
		"long": {
			ended(1, running, 1, stamp+`unknown directive "`+strings.Repeat("\U0001F600", 500)),
			v1alpha2.ReasonInvalidConfiguration, `nginx refuses its configuration: unknown directive "` + strings.Repeat("\U0001F600", 121) + "…",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var want *failure
			if test.reason != "" {
				want = &failure{test.reason, test.message}
			}
			if diff := cmp.Diff(want, podFailure(newPod(test.status)), cmp.AllowUnexported(failure{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
