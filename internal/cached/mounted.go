package cached

import corev1 "k8s.io/api/core/v1"

// MountedConfigMaps returns the names of the ConfigMaps that the Pods of a template mount,
// including ConfigMaps in projected volumes. It accepts a whole template and the form in the cache.
func MountedConfigMaps(template *corev1.PodTemplateSpec) []string {
	var out []string
	for _, volume := range template.Spec.Volumes {
		if volume.ConfigMap != nil {
			out = append(out, volume.ConfigMap.Name)
		}
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ConfigMap != nil {
				out = append(out, source.ConfigMap.Name)
			}
		}
	}
	return out
}
