package operand

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestContainersBesideNginx verifies that ports, probes, and the configuration stay with the nginx
// container if the Pods have other containers. The other containers have no additional permissions.
func TestContainersBesideNginx(t *testing.T) {
	object := fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) {
		s.InitContainers, s.Sidecars = []v1alpha2.Container{{Name: "make"}}, []v1alpha2.Container{{Name: "refresh", Image: "busybox:1.36"}}
	})
	deployment := DesiredDeployment(object, Inputs{Image: fixture.Image})
	pod := &deployment.Spec.Template.Spec
	if len(pod.Containers) != 1 || pod.Containers[0].Name != wellknown.OperandContainer || len(pod.InitContainers) != 2 {
		t.Fatalf("containers %+v, before them %+v", pod.Containers, pod.InitContainers)
	}
	generate, refresh := pod.InitContainers[0], pod.InitContainers[1]
	if generate.Image != fixture.Image || generate.RestartPolicy != nil {
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
		if got := DesiredDeployment(object, Inputs{Image: fixture.Image}).Spec.MinReadySeconds; got != test.want {
			t.Errorf("minReadySeconds %d, want %d", got, test.want)
		}
	}
}
