package operand

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// as returns a value of this API as the type of Kubernetes that has its fields, and others. It
// panics for another type.
func as[T any](declared any) (kubernetes T) {
	raw, err := json.Marshal(declared)
	if err == nil {
		err = json.Unmarshal(raw, &kubernetes)
	}
	if err != nil {
		panic(fmt.Sprintf("failed to convert %T to %T: %v", declared, kubernetes, err))
	}
	return kubernetes
}

// volumesOf returns the volumes of spec.volumes. It declares the API server's defaults in lists,
// which are replaced as a whole: otherwise they would be reported as drift.
func volumesOf(declared []v1alpha2.Volume) []corev1.Volume {
	volumes := as[[]corev1.Volume](declared)
	for i := range volumes {
		if source := volumes[i].DownwardAPI; source != nil {
			setFieldVersion(source.Items)
		}
		if volumes[i].Projected == nil {
			continue
		}

		for _, source := range volumes[i].Projected.Sources {
			if source.DownwardAPI != nil {
				setFieldVersion(source.DownwardAPI.Items)
			}
			if token := source.ServiceAccountToken; token != nil {
				token.ExpirationSeconds = ptr.To(ptr.Deref(token.ExpirationSeconds, 3600))
			}
		}
	}

	return volumes
}

func setFieldVersion(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		files[i].FieldRef.APIVersion = "v1"
	}
}

// mountsOf returns the mounts of spec.volumes in the nginx container.
func mountsOf(declared []v1alpha2.Volume) []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	for _, volume := range declared {
		if volume.MountPath != "" {
			mounts = append(mounts, corev1.VolumeMount{
				Name: volume.Name, MountPath: volume.MountPath, SubPath: volume.SubPath, ReadOnly: volume.ReadOnly,
			})
		}
	}
	return mounts
}

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
