package validation

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// ownVolumes matches names of the operator's volumes. Some are reserved for later releases.
var ownVolumes = regexp.MustCompile(`^(config|tmp|content|files|cache)$|^(tls|operator)-`)

// ownPaths are paths that nginx needs. A volume must not be mounted there, above, or below.
var ownPaths = []string{nginxconf.Directory, nginxconf.TLSDirectory, nginxconf.MimeTypes, "/tmp", "/proc", "/sys", "/dev"}

// validateVolumes validates names, sizes, and mounts, and rejects names and paths that are reserved
// for the operator.
func validateVolumes(spec *v1alpha2.NginxOperatorSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	mounted := sets.New[string]()
	for i, volume := range spec.Volumes {
		at := at.Index(i)
		errs = append(errs, invalid(at.Child("name"), volume.Name, utilvalidation.IsDNS1123Label(volume.Name)...)...)
		if ownVolumes.MatchString(volume.Name) {
			errs = append(errs, field.Forbidden(at.Child("name"),
				"the names config, tmp, content, files, and cache and the prefixes tls- and operator- are reserved for the operator; choose another "+
					"name"))
		}

		if limit := volume.EmptyDir; limit != nil && limit.SizeLimit != nil && isEndless(*limit.SizeLimit) {
			errs = append(errs, field.Invalid(at.Child("emptyDir", "sizeLimit"), field.OmitValueType{}, tooLarge))
		}

		if volume.MountPath == "" {
			if volume.SubPath != "" {
				errs = append(errs, field.Required(at.Child("mountPath"), "subPath requires mountPath; set mountPath, or remove subPath"))
			}
			continue
		}

		if mounted.Has(volume.MountPath) {
			errs = append(errs, field.Duplicate(at.Child("mountPath"), bounded(volume.MountPath)))
		}

		mounted.Insert(volume.MountPath)
		errs = append(errs, validateMount(volume.MountPath, volume.SubPath, at)...)
		if taken := takenBy(volume.MountPath, spec); taken != "" {
			errs = append(errs, field.Forbidden(at.Child("mountPath"), fmt.Sprintf(
				"conflicts with %s, which nginx needs; choose another directory", taken)))
		}
	}

	return errs
}

// validateMount validates the mountPath and the subPath of a mount.
func validateMount(mountPath, subPath string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !path.IsAbs(mountPath) || path.Clean(mountPath) != mountPath || strings.Contains(mountPath, ":") {
		errs = invalid(at.Child("mountPath"), mountPath,
			"must be an absolute path without .., colons, or a trailing slash, for example /srv/files")
	}
	if path.IsAbs(subPath) || slices.Contains(strings.Split(subPath, "/"), "..") {
		errs = append(errs, invalid(at.Child("subPath"), subPath,
			"must be a relative path in the volume without .., for example site/files")...)
	}

	return errs
}

// takenBy returns the path needed by nginx that a mount would hide or contain, or "" if there is
// none.
func takenBy(mountPath string, spec *v1alpha2.NginxOperatorSpec) string {
	if mountPath == "/dev/shm" { // shared memory
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

// contains reports whether a path is the directory, or is below it.
func contains(directory, file string) bool {
	return directory == "/" || directory == file || strings.HasPrefix(file, directory+"/")
}
