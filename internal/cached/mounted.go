package cached

import corev1 "k8s.io/api/core/v1"

// MountedConfigMaps returns the names of the ConfigMaps that the Pods of a template mount,
// including ConfigMaps in projected volumes.
func MountedConfigMaps(template *corev1.PodTemplateSpec) []string {
	var names []string
	for _, volume := range template.Spec.Volumes {
		if volume.ConfigMap != nil {
			names = append(names, volume.ConfigMap.Name)
		}
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ConfigMap != nil {
				names = append(names, source.ConfigMap.Name)
			}
		}
	}
	return names
}
