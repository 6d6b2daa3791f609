package operand

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// mountCache mounts the volume of spec.cache. nginx can write only to this volume and to /tmp.
func mountCache(pod *corev1.PodSpec, cache *v1alpha2.Cache) {
	if cache == nil {
		return
	}
	volume := corev1.EmptyDirVolumeSource{Medium: defaults.CacheMedium(cache)}
	if size, valid := defaults.CacheSize(cache); valid {
		volume.SizeLimit = &size
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &volume}})
	nginx := &pod.Containers[0]
	nginx.VolumeMounts = append(nginx.VolumeMounts, corev1.VolumeMount{Name: "cache", MountPath: defaults.CachePath(cache)})
}
