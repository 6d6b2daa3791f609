package validation

import (
	"fmt"
	"path"
	"slices"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// maxVolumes is how many volumes the schema allows.
const maxVolumes = 16

// ownVolumes are names of volumes that Pods have or may get, and ownVolumePrefixes begin such names or are kept for later.
var (
	ownVolumes        = []string{"config", "tmp", "content", "files", "cache"}
	ownVolumePrefixes = []string{"tls-", "operator-"}
)

// ownPaths are what nginx cannot be without, the directories that the operator mounts among them: no volume may be there, above it or
// below.
var ownPaths = []string{nginxconf.Directory, nginxconf.TLSDirectory, nginxconf.MimeTypes, "/tmp", "/proc", "/sys", "/dev"}

// sharedMemory is below one of ownPaths, and everybody's.
const sharedMemory = "/dev/shm"

// validateVolumes holds what is the operator's in the Pods.
func validateVolumes(spec *v1alpha2.NginxOperatorSpec, at *field.Path) field.ErrorList {
	errs := validateUnique(spec.Volumes, "name", at, func(volume v1alpha2.Volume) string { return volume.Name })
	errs = append(errs, validateUnique(spec.Volumes, "mountPath", at, func(volume v1alpha2.Volume) string { return volume.MountPath })...)
	for i, volume := range spec.Volumes {
		at := at.Index(i)
		for _, message := range utilvalidation.IsDNS1123Label(volume.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), bounded(volume.Name), message))
		}
		if isOwnVolume(volume.Name) {
			errs = append(errs, field.Forbidden(at.Child("name"),
				"config, tmp, content, files, cache and names that begin with tls- or operator- are the operator's volumes; "+
					"choose another name"))
		}
		if limit := volume.EmptyDir; limit != nil && limit.SizeLimit != nil && isEndless(*limit.SizeLimit) {
			errs = append(errs, field.Invalid(at.Child("emptyDir", "sizeLimit"), field.OmitValueType{}, tooLarge))
		}
		if volume.MountPath == "" {
			if volume.SubPath != "" {
				errs = append(errs, field.Required(at.Child("mountPath"), "subPath says what is mounted at mountPath; set it, or remove subPath"))
			}
			continue
		}
		errs = append(errs, validateMount(volume.MountPath, volume.SubPath, at)...)
		if taken := takenBy(volume.MountPath, spec); taken != "" {
			errs = append(errs, field.Forbidden(at.Child("mountPath"), fmt.Sprintf(
				"%s is where the operator or the image has its files; choose a directory apart from it", taken)))
		}
	}
	return errs
}

func isOwnVolume(name string) bool {
	return slices.Contains(ownVolumes, name) ||
		slices.ContainsFunc(ownVolumePrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// validateMount looks at the path of a mount and at what of the volume is mounted there.
func validateMount(mountPath, subPath string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !path.IsAbs(mountPath) || path.Clean(mountPath) != mountPath || strings.Contains(mountPath, ":") {
		errs = append(errs, field.Invalid(at.Child("mountPath"), bounded(mountPath),
			"must be an absolute path without .., a colon or a slash at its end, for example /srv/files"))
	}
	if path.IsAbs(subPath) || slices.Contains(strings.Split(subPath, "/"), "..") {
		errs = append(errs, field.Invalid(at.Child("subPath"), bounded(subPath),
			"must be a path in the volume, without .., for example site/files"))
	}
	return errs
}

// takenBy returns what nginx needs that a mount would hide, or that would be around it, "" where there is nothing.
func takenBy(mountPath string, spec *v1alpha2.NginxOperatorSpec) string {
	if mountPath == sharedMemory {
		return ""
	}
	own := slices.Clone(ownPaths)
	if spec.Content != nil {
		own = append(own, nginxconf.ContentDirectory)
	}
	if len(spec.Files) > 0 {
		own = append(own, nginxconf.FilesDirectory)
	}
	if spec.Cache != nil {
		own = append(own, defaults.CachePath(spec.Cache))
	}
	for _, directory := range own {
		if contains(directory, mountPath) || contains(mountPath, directory) {
			return directory
		}
	}
	return ""
}

// contains reports whether a path is that of a directory, or below it.
func contains(directory, file string) bool {
	return directory == "/" || directory == file || strings.HasPrefix(file, directory+"/")
}
