package operand

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// Defaults of the API server in lists that are replaced as a whole. If they were not declared, they
// would be reported as drift.
const (
	fieldVersion = "v1"
	tokenSeconds = 3600
)

// volumesOf returns the volumes of spec.volumes.
func volumesOf(declared []v1alpha2.Volume) []corev1.Volume {
	var out []corev1.Volume
	for i := range declared {
		out = append(out, corev1.Volume{Name: declared[i].Name, VolumeSource: volumeSourceOf(declared[i].DeepCopy())})
	}
	return out
}

// mountsOf returns the mounts of spec.volumes in the nginx container.
func mountsOf(declared []v1alpha2.Volume) []corev1.VolumeMount {
	var out []corev1.VolumeMount
	for _, volume := range declared {
		if volume.MountPath != "" {
			out = append(out, corev1.VolumeMount{
				Name: volume.Name, MountPath: volume.MountPath, SubPath: volume.SubPath, ReadOnly: volume.ReadOnly,
			})
		}
	}
	return out
}

func volumeSourceOf(declared *v1alpha2.Volume) corev1.VolumeSource {
	var out corev1.VolumeSource
	if from := declared.ConfigMap; from != nil {
		out.ConfigMap = &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: from.Name},
			Items:                keysOf(from.Items), DefaultMode: from.DefaultMode, Optional: orNil(from.Optional),
		}
	}
	if from := declared.Secret; from != nil {
		out.Secret = &corev1.SecretVolumeSource{
			SecretName: from.SecretName, Items: keysOf(from.Items), DefaultMode: from.DefaultMode, Optional: orNil(from.Optional),
		}
	}
	if from := declared.EmptyDir; from != nil {
		out.EmptyDir = &corev1.EmptyDirVolumeSource{Medium: from.Medium, SizeLimit: from.SizeLimit}
	}
	if from := declared.PersistentVolumeClaim; from != nil {
		out.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: from.ClaimName}
	}
	if from := declared.CSI; from != nil {
		out.CSI = csiSourceOf(from)
	}
	if from := declared.DownwardAPI; from != nil {
		out.DownwardAPI = &corev1.DownwardAPIVolumeSource{Items: filesOf(from.Items)}
	}
	if from := declared.Projected; from != nil {
		out.Projected = &corev1.ProjectedVolumeSource{Sources: projectionsOf(from.Sources), DefaultMode: from.DefaultMode}
	}
	return out
}

func csiSourceOf(declared *v1alpha2.CSIVolume) *corev1.CSIVolumeSource {
	out := &corev1.CSIVolumeSource{Driver: declared.Driver, ReadOnly: orNil(declared.ReadOnly)}
	for key, value := range declared.VolumeAttributes {
		if out.VolumeAttributes == nil {
			out.VolumeAttributes = map[string]string{}
		}
		out.VolumeAttributes[key] = string(value)
	}
	if secret := declared.NodePublishSecretRef; secret != nil {
		out.NodePublishSecretRef = &corev1.LocalObjectReference{Name: secret.Name}
	}
	return out
}

func projectionsOf(declared []v1alpha2.ProjectedSource) []corev1.VolumeProjection {
	var out []corev1.VolumeProjection
	for _, source := range declared {
		var projection corev1.VolumeProjection
		if from := source.ConfigMap; from != nil {
			projection.ConfigMap = &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: from.Name}, Items: keysOf(from.Items), Optional: orNil(from.Optional),
			}
		}
		if from := source.Secret; from != nil {
			projection.Secret = &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: from.Name}, Items: keysOf(from.Items), Optional: orNil(from.Optional),
			}
		}
		if from := source.DownwardAPI; from != nil {
			projection.DownwardAPI = &corev1.DownwardAPIProjection{Items: filesOf(from.Items)}
		}
		if from := source.ServiceAccountToken; from != nil {
			projection.ServiceAccountToken = &corev1.ServiceAccountTokenProjection{
				Path: from.Path, Audience: from.Audience,
				ExpirationSeconds: ptr.To(ptr.Deref(from.ExpirationSeconds, tokenSeconds)),
			}
		}
		out = append(out, projection)
	}
	return out
}

func keysOf(declared []v1alpha2.KeyToPath) []corev1.KeyToPath {
	var out []corev1.KeyToPath
	for _, item := range declared {
		out = append(out, corev1.KeyToPath{Key: item.Key, Path: item.Path})
	}
	return out
}

func filesOf(declared []v1alpha2.DownwardAPIFile) []corev1.DownwardAPIVolumeFile {
	var out []corev1.DownwardAPIVolumeFile
	for _, file := range declared {
		out = append(out, corev1.DownwardAPIVolumeFile{
			Path: file.Path, FieldRef: &corev1.ObjectFieldSelector{APIVersion: fieldVersion, FieldPath: file.FieldRef.FieldPath},
		})
	}
	return out
}
