package nginxconf

import (
	"path"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// volumeAt returns the volume of the spec that has a file, or nil if no volume has it.
func (c *checker) volumeAt(file string) *v1alpha2.Volume {
	var found *v1alpha2.Volume
	for i := range c.spec.Volumes {
		volume := &c.spec.Volumes[i]
		mounted := volume.MountPath != "" && (path.Clean(file) == volume.MountPath || isBelow(file, volume.MountPath))
		if mounted && (found == nil || len(volume.MountPath) > len(found.MountPath)) {
			found = volume
		}
	}
	return found
}

// isWritableVolume reports whether nginx can write to a volume. Only emptyDir,
// PersistentVolumeClaim, and CSI volumes can be writable.
func isWritableVolume(volume *v1alpha2.Volume) bool {
	return !volume.ReadOnly &&
		(volume.EmptyDir != nil || volume.PersistentVolumeClaim != nil || volume.CSI != nil && !volume.CSI.ReadOnly)
}
