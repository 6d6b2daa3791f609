package cached

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/internal/wellknown"
)

// AnnotationSecrets marks a Pod that can read a Secret. It exists only in the cache.
const AnnotationSecrets = "operator.example.com/may-see-secrets"

// MaySeeSecrets reports whether a container of a Pod can read data that is not public.
//
// ConfigMaps, the downward API, literal environment variables, and empty directories are public.
// All other sources count as secret: Secrets, tokens, CSI drivers, claims, directories of the node,
// and sources that this release does not know. The result applies to the Pod, because its
// containers share directories and the network.
func MaySeeSecrets(pod *corev1.Pod) bool {
	for _, key := range []string{AnnotationSecrets, wellknown.AnnotationFiles} {
		if _, marked := pod.Annotations[key]; marked {
			return true
		}
	}
	if slices.ContainsFunc(pod.Spec.Volumes, isSecretVolume) || slices.ContainsFunc(pod.Spec.InitContainers, hasSecretEnv) ||
		slices.ContainsFunc(pod.Spec.Containers, hasSecretEnv) {
		return true
	}
	return slices.ContainsFunc(pod.Spec.EphemeralContainers, func(container corev1.EphemeralContainer) bool {
		return hasSecretEnv(corev1.Container(container.EphemeralContainerCommon))
	})
}

func isSecretVolume(volume corev1.Volume) bool {
	switch source := volume.VolumeSource; {
	case source.ConfigMap != nil, source.EmptyDir != nil, source.DownwardAPI != nil:
		return false
	case source.Projected != nil:
		return slices.ContainsFunc(source.Projected.Sources, func(from corev1.VolumeProjection) bool {
			return from.ConfigMap == nil && from.DownwardAPI == nil && from.ClusterTrustBundle == nil
		})
	}
	return true
}

func hasSecretEnv(container corev1.Container) bool {
	return slices.ContainsFunc(container.EnvFrom, func(from corev1.EnvFromSource) bool { return from.ConfigMapRef == nil }) ||
		slices.ContainsFunc(container.Env, func(variable corev1.EnvVar) bool {
			from := ptr.Deref(variable.ValueFrom, corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}})
			return from.ConfigMapKeyRef == nil && from.FieldRef == nil && from.ResourceFieldRef == nil
		})
}
