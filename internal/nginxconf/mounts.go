package nginxconf

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/patch"
)

// mount is a volume in the nginx container that spec.volumes or a patch mounts.
type mount struct {
	path, volume string
	// writable reports whether nginx can write to it.
	writable bool
	// secret reports whether it has a Secret or a token.
	secret bool
}

// mountsOf returns the mounts of a spec. complete is false if the mounts of patches are unknown.
func mountsOf(spec *v1alpha2.NginxOperatorSpec) (mounts []mount, complete bool) {
	for i := range spec.Volumes {
		if volume := &spec.Volumes[i]; volume.MountPath != "" {
			mounts = append(mounts, mount{
				path: volume.MountPath, volume: volume.Name, writable: isWritableVolume(volume) && !volume.ReadOnly, secret: holdsSecrets(volume),
			})
		}
	}

	patched, err := patch.Mounts(spec.Patches)
	for i := range patched {
		mounts = append(mounts, patchedMount(spec, &patched[i]))
	}
	return mounts, err == nil
}

// patchedMount returns the mount of a patch, whose volume can also be one of spec.volumes, or the
// volume of spec.cache.
func patchedMount(spec *v1alpha2.NginxOperatorSpec, patched *patch.Mount) mount {
	out := mount{path: path.Clean(patched.Path), volume: patched.Volume}
	if source := patched.Source; source != nil {
		out.writable = source.EmptyDir != nil || source.Ephemeral != nil ||
			source.PersistentVolumeClaim != nil && !source.PersistentVolumeClaim.ReadOnly ||
			source.CSI != nil && (source.CSI.ReadOnly == nil || !*source.CSI.ReadOnly)
		out.secret = source.Secret != nil || source.Projected != nil && slices.ContainsFunc(source.Projected.Sources,
			func(one corev1.VolumeProjection) bool { return one.Secret != nil || one.ServiceAccountToken != nil })
	} else if at := slices.IndexFunc(spec.Volumes, func(one v1alpha2.Volume) bool { return one.Name == patched.Volume }); at >= 0 {
		out.writable, out.secret = isWritableVolume(&spec.Volumes[at]), holdsSecrets(&spec.Volumes[at])
	} else {
		out.writable = spec.Cache != nil && patched.Volume == "cache"
	}
	out.writable = out.writable && !patched.ReadOnly
	return out
}

// mountAt returns the innermost mount that has a file, or nil if no mount has it.
func (c *checker) mountAt(file string) *mount {
	var found *mount
	for i := range c.mounts {
		one := &c.mounts[i]
		has := path.Clean(file) == one.path || isBelow(file, one.path)
		if has && (found == nil || len(one.path) > len(found.path)) {
			found = one
		}
	}
	return found
}

// isWritableVolume reports whether nginx can write to a volume that is not mounted read-only. Only
// emptyDir, PersistentVolumeClaim, and CSI volumes can be writable.
func isWritableVolume(volume *v1alpha2.Volume) bool {
	return volume.EmptyDir != nil || volume.PersistentVolumeClaim != nil || volume.CSI != nil && !volume.CSI.ReadOnly
}
