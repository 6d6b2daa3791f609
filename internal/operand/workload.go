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
	nginx.Env = envOf(spec.Env)
	pod.Volumes = append(pod.Volumes, volumesOf(spec.Volumes)...)
	nginx.VolumeMounts = append(nginx.VolumeMounts, mountsOf(spec.Volumes)...)
	setSecurityContext(pod.SecurityContext, spec.SecurityContext.DeepCopy())
	pod.InitContainers = append(containersOf(spec.InitContainers, nginx, nil),
		containersOf(spec.Sidecars, nginx, ptr.To(corev1.ContainerRestartPolicyAlways))...)
	pod.ServiceAccountName = spec.ServiceAccountName
	// The API server stores the older field as well, and uses it if the newer one is removed.
	pod.DeprecatedServiceAccount = spec.ServiceAccountName //nolint:staticcheck // see above
}

// setSecurityContext adds the declared users and groups to the restricted security context of the
// asset.
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

// containersOf returns containers with the security context and the termination message policy of
// nginx.
func containersOf(declared []v1alpha2.Container, nginx *corev1.Container, restart *corev1.ContainerRestartPolicy) []corev1.Container {
	var out []corev1.Container
	for i := range declared {
		from := declared[i].DeepCopy()
		container := corev1.Container{
			Name: from.Name, Image: cmp.Or(from.Image, nginx.Image), ImagePullPolicy: nginx.ImagePullPolicy,
			Command: from.Command, Args: from.Args, Env: envOf(from.Env), RestartPolicy: restart,
			SecurityContext: nginx.SecurityContext.DeepCopy(), TerminationMessagePolicy: nginx.TerminationMessagePolicy,
		}
		if resources := from.Resources; resources != nil {
			container.Resources = corev1.ResourceRequirements{Limits: resources.Limits, Requests: resources.Requests}
		}
		for _, mount := range from.VolumeMounts {
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{
				Name: mount.Name, MountPath: mount.MountPath, SubPath: mount.SubPath, ReadOnly: mount.ReadOnly,
			})
		}
		out = append(out, container)
	}
	return out
}

// minReadySeconds returns the seconds that a Pod must be ready to count as available: 0 without
// sidecars, and at most a quarter of the progress deadline.
func minReadySeconds(spec *v1alpha2.NginxOperatorSpec) int32 {
	if len(spec.Sidecars) == 0 {
		return 0
	}
	return min(health.SidecarSettleSeconds, defaults.RolloutOf(spec).ProgressDeadlineSeconds/4)
}

func envOf(declared []v1alpha2.EnvVar) []corev1.EnvVar {
	var out []corev1.EnvVar
	for _, variable := range declared {
		out = append(out, corev1.EnvVar{Name: variable.Name, Value: variable.Value, ValueFrom: envSourceOf(variable.ValueFrom)})
	}
	return out
}

func envSourceOf(declared *v1alpha2.EnvVarSource) *corev1.EnvVarSource {
	if declared == nil {
		return nil
	}
	out := &corev1.EnvVarSource{}
	if ref := declared.ConfigMapKeyRef; ref != nil {
		out.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: ref.Name}, Key: ref.Key, Optional: orNil(ref.Optional),
		}
	}
	if ref := declared.SecretKeyRef; ref != nil {
		out.SecretKeyRef = &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: ref.Name}, Key: ref.Key, Optional: orNil(ref.Optional),
		}
	}
	if ref := declared.FieldRef; ref != nil {
		out.FieldRef = &corev1.ObjectFieldSelector{FieldPath: ref.FieldPath}
	}
	if ref := declared.ResourceFieldRef; ref != nil {
		out.ResourceFieldRef = &corev1.ResourceFieldSelector{Resource: ref.Resource}
	}
	return out
}

// orNil returns nil for the zero value.
func orNil[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return ptr.To(value)
}
