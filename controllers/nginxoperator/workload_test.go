package nginxoperator

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// What keeps an init container or a sidecar from its work is told with its name, and no moment between two crashes looks like a recovery.
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
	crash := &failure{v1alpha2.ReasonCrashLoop, `container "make" keeps crashing with exit code 1 (Error): no repository`}
	for name, test := range map[string]struct {
		status corev1.ContainerStatus
		want   *failure
	}{
		"starting": {status: waiting("PodInitializing", "")},
		"no image": {waiting("ErrImagePull", "not found"), &failure{
			v1alpha2.ReasonImagePullFailed, `cannot pull image "example.com/make:1" of container "make": not found`,
		}},
		"no Secret": {waiting("CreateContainerConfigError", `secret "git" not found`), &failure{
			v1alpha2.ReasonContainerConfigError, `cannot start container "make": secret "git" not found`,
		}},
		"first crash": {status: ended(1, since(0), 1, "no repository")},
		"crash loop":  {ended(3, waiting("CrashLoopBackOff", "").State, 1, "no repository"), crash},
		"tries again": {ended(3, since(time.Hour), 1, "no repository"), crash},
		"words of nginx": {ended(3, since(time.Hour), 1, refused), &failure{
			v1alpha2.ReasonCrashLoop,
			`container "make" keeps crashing with exit code 1 (Error): [emerg] unknown directive "a" in /etc/nginx-operator/servers.conf:3`,
		}},
		"succeeded":               {status: succeeded},
		"sidecar runs":            {status: sidecar(corev1.ContainerStatus{State: since(0)})},
		"sidecar between two":     {sidecar(ended(3, since(time.Second), 1, "no repository")), crash},
		"sidecar crashed before":  {status: sidecar(ended(3, since(time.Minute), 1, "no repository"))},
		"sidecar crashes forever": {ended(9, waiting("CrashLoopBackOff", "").State, 1, "no repository"), crash},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod(waiting("PodInitializing", ""))
			test.status.Name, test.status.Image = "make", "example.com/make:1"
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "before", Ready: true}, test.status}
			if diff := gocmp.Diff(test.want, podFailure(pod), gocmp.AllowUnexported(failure{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever else is in the Pods: ports, probes and the configuration are those of nginx, and the others have no more rights than it.
func TestContainersBesideNginx(t *testing.T) {
	object := newObject(func(s *v1alpha2.NginxOperatorSpec) {
		s.InitContainers, s.Sidecars = []v1alpha2.Container{{Name: "make"}}, []v1alpha2.Container{{Name: "refresh", Image: "busybox:1.36"}}
	})
	deployment := desiredDeployment(object, inputs{image: testImage})
	pod := &deployment.Spec.Template.Spec
	if len(pod.Containers) != 1 || pod.Containers[0].Name != wellknown.OperandContainer || len(pod.InitContainers) != 2 {
		t.Fatalf("containers %+v, before them %+v", pod.Containers, pod.InitContainers)
	}
	generate, refresh := pod.InitContainers[0], pod.InitContainers[1]
	if generate.Image != testImage || generate.RestartPolicy != nil {
		t.Errorf("init container %+v", generate)
	}
	if refresh.Image != "busybox:1.36" || ptr.Deref(refresh.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways {
		t.Errorf("sidecar %+v", refresh)
	}
	for _, container := range pod.InitContainers {
		if diff := gocmp.Diff(pod.Containers[0].SecurityContext, container.SecurityContext); diff != "" {
			t.Errorf("%s: %s", container.Name, diff)
		}
	}
	for _, test := range []struct {
		deadline *int32
		sidecars []v1alpha2.Container
		want     int32
	}{{nil, nil, 0}, {nil, object.Spec.Sidecars, 10}, {ptr.To[int32](10), object.Spec.Sidecars, 2}} {
		object.Spec.Sidecars, object.Spec.Rollout = test.sidecars, &v1alpha2.Rollout{ProgressDeadlineSeconds: test.deadline}
		if got := desiredDeployment(object, inputs{image: testImage}).Spec.MinReadySeconds; got != test.want {
			t.Errorf("minReadySeconds %d, want %d", got, test.want)
		}
	}
}
