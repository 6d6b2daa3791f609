package objectcache

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/internal/cached"
)

const (
	// maxVolumes is the maximum number of volumes with ConfigMaps of a Pod template in the cache. A
	// spec has at most 16 volumes, and the operator adds up to three.
	maxVolumes = 32
	// maxSources is the maximum number of ConfigMaps in all projected volumes of a Pod template in
	// the cache. A spec has at most 256: 16 in each of 16 volumes.
	maxSources = 320
)

// slimVolumes keeps the volumes with ConfigMaps, and the names of these ConfigMaps. The volumes of
// the operator come first, so the bounds never drop a ConfigMap that the operator would then
// delete.
func slimVolumes(volumes []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	sources := maxSources
	for _, own := range []bool{true, false} {
		for i := range volumes {
			if cached.IsOwnVolume(volumes[i].Name) != own || len(out) == maxVolumes {
				continue
			}
			if kept, ok := slimVolume(&volumes[i], &sources); ok {
				out = append(out, kept)
			}
		}
	}

	return out
}

// slimVolume returns the ConfigMaps of a volume, and reports whether it has any. It subtracts the
// ConfigMaps of a projected volume from sources, the number that the cache can still keep.
func slimVolume(volume *corev1.Volume, sources *int) (corev1.Volume, bool) {
	out := corev1.Volume{}
	if cached.IsOwnVolume(volume.Name) {
		out.Name = volume.Name
	}
	if volume.ConfigMap != nil && len(volume.ConfigMap.Name) <= maxName {
		out.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: volume.ConfigMap.Name}}
		return out, true
	}
	if volume.Projected == nil {
		return out, false
	}

	var kept []corev1.VolumeProjection
	for _, source := range volume.Projected.Sources {
		if source.ConfigMap != nil && len(source.ConfigMap.Name) <= maxName && *sources > 0 {
			kept = append(kept, corev1.VolumeProjection{
				ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: source.ConfigMap.Name}},
			})
			*sources--
		}
	}

	out.Projected = &corev1.ProjectedVolumeSource{Sources: kept}
	return out, len(kept) > 0
}
