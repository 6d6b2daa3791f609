package nginxconf

import (
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/patch"
)

// mount is a volume in the nginx container that spec.volumes or a patch mounts. writable reports
// whether nginx can write to it, and secret whether it has a Secret or a token.
type mount struct {
	path, volume     string
	writable, secret bool
}

// mountsOf returns the mounts of a spec. complete is false if the mounts of patches are unknown.
func mountsOf(spec *v1alpha2.NginxOperatorSpec) (mounts []mount, complete bool) {
	for i := range spec.Volumes {
		if volume := &spec.Volumes[i]; volume.MountPath != "" {
			writable, secret := declaredVolume(volume)
			mounts = append(mounts, mount{path.Clean(volume.MountPath), volume.Name, writable && !volume.ReadOnly, secret})
		}
	}

	pod, own, complete := patchedPod(spec.Patches)
	for _, patched := range own {
		writable, secret := patchedVolume(spec, pod, patched.Name)
		mounts = append(mounts, mount{path.Clean(patched.MountPath), patched.Name, writable && !patched.ReadOnly, secret})
	}

	return mounts, complete
}

// patchedPod applies patches to the asset of the Deployment, because only the spec is known. It
// returns the Pod, and its mounts that are not in the asset. It returns false if that fails, for
// example because a patch refers to a part that the asset does not have.
func patchedPod(patches []v1alpha2.Patch) (*corev1.PodSpec, []corev1.VolumeMount, bool) {
	var relevant []v1alpha2.Patch
	hasMounts := false
	for _, declared := range patches {
		if declared.Target.Kind == "Deployment" {
			declared.Target.Name = "" // the asset has no name
			relevant = append(relevant, declared)
			hasMounts = hasMounts || strings.Contains(declared.Patch, "volumeMounts")
		}
	}

	if !hasMounts {
		return nil, nil, true
	}

	asset := assets.Deployment()
	children, errs := patch.Apply(relevant, []client.Object{asset}, field.NewPath("patches"))
	if len(errs) > 0 {
		return nil, nil, false
	}

	pod := &children[0].(*appsv1.Deployment).Spec.Template.Spec
	nginx := asset.Spec.Template.Spec.Containers[0]
	i := slices.IndexFunc(pod.Containers, func(container corev1.Container) bool { return container.Name == nginx.Name })
	if i < 0 {
		return nil, nil, false
	}

	own := slices.DeleteFunc(pod.Containers[i].VolumeMounts, func(mount corev1.VolumeMount) bool {
		return slices.ContainsFunc(nginx.VolumeMounts, func(other corev1.VolumeMount) bool { return other.MountPath == mount.MountPath })
	})
	return pod, own, true
}

// patchedVolume returns the properties of a volume that a patch mounts: one of the patched Pod, of
// spec.volumes, or of spec.cache.
func patchedVolume(spec *v1alpha2.NginxOperatorSpec, pod *corev1.PodSpec, name string) (writable, secret bool) {
	for i := range pod.Volumes {
		if source := &pod.Volumes[i]; source.Name == name {
			writable = source.EmptyDir != nil || source.Ephemeral != nil ||
				source.PersistentVolumeClaim != nil && !source.PersistentVolumeClaim.ReadOnly ||
				source.CSI != nil && !ptr.Deref(source.CSI.ReadOnly, false)
			return writable, source.Secret != nil || source.Projected != nil && slices.ContainsFunc(source.Projected.Sources,
				func(part corev1.VolumeProjection) bool { return part.Secret != nil || part.ServiceAccountToken != nil })
		}
	}
	for i := range spec.Volumes {
		if spec.Volumes[i].Name == name {
			return declaredVolume(&spec.Volumes[i])
		}
	}
	return spec.Cache != nil && name == "cache", false
}

// declaredVolume returns the properties of a volume that is not mounted read-only.
func declaredVolume(volume *v1alpha2.Volume) (writable, secret bool) {
	writable = volume.EmptyDir != nil || volume.PersistentVolumeClaim != nil || volume.CSI != nil && !volume.CSI.ReadOnly
	return writable, volume.Secret != nil || volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources,
		func(source v1alpha2.ProjectedSource) bool {
			return source.Secret != nil || source.ServiceAccountToken != nil
		})
}

// mountAt returns the innermost mount that has a file, or nil if no mount has it.
func (c *checker) mountAt(file string) *mount {
	var innermost *mount
	for i := range c.mounts {
		mount := &c.mounts[i]
		if isWithin(file, mount.path) && (innermost == nil || len(mount.path) > len(innermost.path)) {
			innermost = mount
		}
	}
	return innermost
}
