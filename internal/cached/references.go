package cached

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/internal/wellknown"
)

// CertificateVolume is the reserved prefix of the names of the volumes of spec.tls.
const CertificateVolume = "tls-"

// IsOwnVolume reports whether a name belongs to a ConfigMap volume of the operator.
func IsOwnVolume(name string) bool {
	return name == "config" || name == "content" || name == "files" || strings.HasPrefix(name, "operator-")
}

// References are the names of the users' objects that the Pods of a template need, sorted, each
// once. Optional objects are not among them, because a Pod starts without them.
type References struct {
	// Certificates are the Secrets of spec.tls.
	Certificates []string
	// Secrets and ConfigMaps are those of other volumes, and of environment variables.
	Secrets, ConfigMaps []string
	// PullSecrets are the Secrets for the registries of images.
	PullSecrets []string
}

// ReferencesOf returns the references of the Pods of a template.
func ReferencesOf(pod *corev1.PodSpec) References {
	var out References
	for i := range pod.Volumes {
		out.addVolume(&pod.Volumes[i])
	}

	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			out.addContainer(&containers[i])
		}
	}

	for _, reference := range pod.ImagePullSecrets {
		out.PullSecrets = append(out.PullSecrets, reference.Name)
	}
	for _, names := range []*[]string{&out.Certificates, &out.Secrets, &out.ConfigMaps, &out.PullSecrets} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}

	return out
}

// AllSecrets returns the names of all Secrets.
func (r References) AllSecrets() []string {
	return slices.Concat(r.Certificates, r.Secrets, r.PullSecrets)
}

// PodSpec returns the form of the references in the cache. ReferencesOf reverses it.
func (r References) PodSpec() corev1.PodSpec {
	var out corev1.PodSpec
	for _, name := range r.Certificates {
		out.Volumes = append(out.Volumes, corev1.Volume{
			Name: CertificateVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}},
		})
	}

	var others []corev1.VolumeProjection
	for _, name := range r.Secrets {
		others = append(others, corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: named(name)}})
	}
	for _, name := range r.ConfigMaps {
		others = append(others, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named(name)}})
	}

	if len(others) > 0 {
		out.Volumes = append(out.Volumes, corev1.Volume{
			VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: others}},
		})
	}

	for _, name := range r.PullSecrets {
		out.ImagePullSecrets = append(out.ImagePullSecrets, named(name))
	}

	return out
}

func named(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func addUnlessOptional(names *[]string, name string, optional *bool) {
	if !ptr.Deref(optional, false) {
		*names = append(*names, name)
	}
}

// addVolume adds the references of a volume. It ignores the ConfigMaps of the operator.
func (r *References) addVolume(volume *corev1.Volume) {
	isOwn := IsOwnVolume(volume.Name)
	switch secret := volume.Secret; {
	case secret == nil:
	case strings.HasPrefix(volume.Name, CertificateVolume):
		r.Certificates = append(r.Certificates, secret.SecretName)
	default:
		addUnlessOptional(&r.Secrets, secret.SecretName, secret.Optional)
	}

	if source := volume.ConfigMap; source != nil && !isOwn {
		addUnlessOptional(&r.ConfigMaps, source.Name, source.Optional)
	}
	if csi := volume.CSI; csi != nil && csi.NodePublishSecretRef != nil {
		r.Secrets = append(r.Secrets, csi.NodePublishSecretRef.Name)
	}
	if volume.Projected == nil {
		return
	}

	for _, source := range volume.Projected.Sources {
		if source.Secret != nil {
			addUnlessOptional(&r.Secrets, source.Secret.Name, source.Secret.Optional)
		}
		if source.ConfigMap != nil && !isOwn {
			addUnlessOptional(&r.ConfigMaps, source.ConfigMap.Name, source.ConfigMap.Optional)
		}
	}
}

func (r *References) addContainer(container *corev1.Container) {
	for _, from := range container.EnvFrom {
		if from.SecretRef != nil {
			addUnlessOptional(&r.Secrets, from.SecretRef.Name, from.SecretRef.Optional)
		}
		if from.ConfigMapRef != nil {
			addUnlessOptional(&r.ConfigMaps, from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
		}
	}
	for _, variable := range container.Env {
		from := variable.ValueFrom
		if from == nil {
			continue
		}
		if from.SecretKeyRef != nil {
			addUnlessOptional(&r.Secrets, from.SecretKeyRef.Name, from.SecretKeyRef.Optional)
		}
		if from.ConfigMapKeyRef != nil {
			addUnlessOptional(&r.ConfigMaps, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Optional)
		}
	}
}

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
