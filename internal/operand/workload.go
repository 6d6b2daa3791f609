package operand

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/health"
)

// setWorkload adds the env, volumes, containers, and service account of a spec. Its volumes must
// directly follow the volumes of the asset, where validation.Verdict expects them.
func setWorkload(pod *corev1.PodSpec, spec *v1alpha2.NginxOperatorSpec) {
	nginx := &pod.Containers[0]
	nginx.Env = as[[]corev1.EnvVar](spec.Env)
	pod.Volumes = append(pod.Volumes, volumesOf(spec.Volumes)...)
	nginx.VolumeMounts = append(nginx.VolumeMounts, mountsOf(spec.Volumes)...)
	setSecurityContext(pod.SecurityContext, spec.SecurityContext.DeepCopy())
	pod.InitContainers = append(containersOf(spec.InitContainers, nginx, nil),
		containersOf(spec.Sidecars, nginx, ptr.To(corev1.ContainerRestartPolicyAlways))...)
	pod.ServiceAccountName = spec.ServiceAccountName

	// The API server stores the older field as well, and uses it if the newer one is removed.
	pod.DeprecatedServiceAccount = spec.ServiceAccountName //nolint:staticcheck // see above
}

// setSecurityContext adds the declared users and groups to the security context of the asset.
func setSecurityContext(pod *corev1.PodSecurityContext, declared *v1alpha2.PodSecurityContext) {
	if declared == nil {
		return
	}

	pod.RunAsUser, pod.RunAsGroup, pod.FSGroup = declared.RunAsUser, declared.RunAsGroup, declared.FSGroup
	pod.SupplementalGroups = declared.SupplementalGroups
	if declared.FSGroupChangePolicy == corev1.FSGroupChangeOnRootMismatch {
		pod.FSGroupChangePolicy = &declared.FSGroupChangePolicy
	}
}

// containersOf returns containers with the security context of nginx.
func containersOf(declared []v1alpha2.Container, nginx *corev1.Container, restart *corev1.ContainerRestartPolicy) []corev1.Container {
	containers := as[[]corev1.Container](declared)
	for i := range containers {
		container := &containers[i]
		container.Image, container.ImagePullPolicy = cmp.Or(container.Image, nginx.Image), nginx.ImagePullPolicy
		container.RestartPolicy, container.SecurityContext = restart, nginx.SecurityContext.DeepCopy()
		container.TerminationMessagePolicy = nginx.TerminationMessagePolicy
	}
	return containers
}

// minReadySeconds returns the seconds that a Pod must be ready to count as available: 0 without
// sidecars, and at most a quarter of the progress deadline.
func minReadySeconds(spec *v1alpha2.NginxOperatorSpec) int32 {
	if len(spec.Sidecars) == 0 {
		return 0
	}
	return min(health.SidecarSettleSeconds, defaults.RolloutOf(spec).ProgressDeadlineSeconds/4)
}

// orNil returns nil for the zero value.
func orNil[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return ptr.To(value)
}
