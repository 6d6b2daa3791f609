package inputs

import (
	"slices"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// workloadReferences returns the names of the ConfigMaps and Secrets that the containers and
// volumes of a spec reference, each once. The kubelet reads these objects, not the operator. The
// operator watches them because a Pod may wait for a missing one.
func workloadReferences(spec *v1alpha2.NginxOperatorSpec) (configMaps, secrets []string) {
	env := slices.Clone(spec.Env)
	for _, container := range slices.Concat(spec.InitContainers, spec.Sidecars) {
		env = append(env, container.Env...)
	}
	for _, variable := range env {
		if variable.ValueFrom == nil {
			continue
		}
		if ref := variable.ValueFrom.ConfigMapKeyRef; ref != nil {
			configMaps = append(configMaps, ref.Name)
		}
		if ref := variable.ValueFrom.SecretKeyRef; ref != nil {
			secrets = append(secrets, ref.Name)
		}
	}

	for i := range spec.Volumes {
		ofVolume, secretsOfVolume := volumeReferences(&spec.Volumes[i])
		configMaps, secrets = append(configMaps, ofVolume...), append(secrets, secretsOfVolume...)
	}
	if spec.PodTemplate != nil {
		for _, ref := range spec.PodTemplate.ImagePullSecrets {
			secrets = append(secrets, ref.Name)
		}
	}
	return distinct(configMaps), distinct(secrets)
}

// volumeReferences returns the names of the ConfigMaps and Secrets that a volume references.
func volumeReferences(volume *v1alpha2.Volume) (configMaps, secrets []string) {
	if volume.ConfigMap != nil {
		configMaps = append(configMaps, volume.ConfigMap.Name)
	}
	if volume.Secret != nil {
		secrets = append(secrets, volume.Secret.SecretName)
	}
	if volume.CSI != nil && volume.CSI.NodePublishSecretRef != nil {
		secrets = append(secrets, volume.CSI.NodePublishSecretRef.Name)
	}
	if volume.Projected == nil {
		return configMaps, secrets
	}
	for _, source := range volume.Projected.Sources {
		if source.ConfigMap != nil {
			configMaps = append(configMaps, source.ConfigMap.Name)
		}
		if source.Secret != nil {
			secrets = append(secrets, source.Secret.Name)
		}
	}
	return configMaps, secrets
}

// distinct returns the names in order, each once, or nil if there is none.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
