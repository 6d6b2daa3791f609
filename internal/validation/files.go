package validation

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// maxFilePath is the maximum length of a path, as in the schema.
const maxFilePath = 127

// Patterns of paths, as in the schema.
var (
	filePath  = regexp.MustCompile(`^[a-zA-Z0-9_][-._a-zA-Z0-9]*(/[a-zA-Z0-9_][-._a-zA-Z0-9]*)?$`)
	cachePath = regexp.MustCompile(`^/(var/cache|cache|data|mnt|srv)(/[a-zA-Z0-9_][-._a-zA-Z0-9]*)*$`)
)

// validateFiles validates the paths of files. A path must not leave its directory, nor be both a
// file and a directory. The comparison of all pairs is cheap, because maxItems bounds the number of
// files.
func validateFiles(files []v1alpha2.File, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, file := range files {
		at := path.Index(i)
		if len(file.Path) > maxFilePath || !filePath.MatchString(file.Path) || strings.Contains(file.Path, "..") {
			errs = append(errs, field.Invalid(at.Child("path"), field.OmitValueType{},
				"must be a name, or a directory and a name, for example snippets/headers.conf"))
		}

		for j, other := range files {
			if j < i && other.Path == file.Path {
				errs = append(errs, field.Duplicate(at.Child("path"), file.Path))
			}
			if strings.HasPrefix(other.Path, file.Path+"/") {
				errs = append(errs, field.Invalid(at.Child("path"), file.Path, "cannot be both a file and a directory; rename one of them"))
			}
		}

		if (file.ConfigMapRef == nil) == (file.SecretRef == nil) {
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, "takes exactly one of configMapRef and secretRef"))
		}
		if ref := file.ConfigMapRef; ref != nil {
			errs = append(errs, validateName(ref.Name, at.Child("configMapRef", "name"))...)
			errs = append(errs, validateConfigMapKey(ref.Key, at.Child("configMapRef", "key"))...)
		}
		if ref := file.SecretRef; ref != nil {
			errs = append(errs, validateName(ref.Name, at.Child("secretRef", "name"))...)
			errs = append(errs, validateKey(ref.Key, at.Child("secretRef", "key"))...)
		}
	}
	return errs
}

// validateCache validates the cache. Its volume must not hide files of the image or of the
// operator, and its size must be cheap to compute with.
func validateCache(cache *v1alpha2.Cache, path *field.Path) field.ErrorList {
	if cache == nil {
		return nil
	}
	var errs field.ErrorList
	if mounted := defaults.CachePath(cache); len(mounted) > maxFilePath || !cachePath.MatchString(mounted) {
		errs = append(errs, field.Invalid(path.Child("path"), field.OmitValueType{},
			"must be /var/cache, /cache, /data, /mnt, or /srv, or a directory below one of these"))
	}
	if _, valid := defaults.CacheSize(cache); !valid {
		errs = append(errs, field.Invalid(path.Child("size"), field.OmitValueType{},
			"must be a number of one to five digits with the unit M, G, Mi, or Gi, for example 500Mi or 2Gi"))
	}
	return errs
}

// warnFiles warns of files and caches without effect, and of a cache in memory that is too large.
func warnFiles(spec *v1alpha2.NginxOperatorSpec) []string {
	var out []string
	if len(spec.Files) > 0 && spec.Config == nil {
		out = append(out, "spec.files: files have no effect without spec.config")
	}

	if spec.Cache == nil {
		return out
	}
	if spec.Config == nil {
		out = append(out, "spec.cache: a cache has no effect without spec.config")
	}
	size, valid := defaults.CacheSize(spec.Cache)

	if spec.Cache.InMemory && valid && spec.Resources != nil {
		if limit, ok := spec.Resources.Limits["memory"]; ok && !isEndless(limit) && limit.Cmp(size) <= 0 {
			out = append(out, fmt.Sprintf("spec.cache.inMemory: the content counts toward resources.limits.memory (%s), and nginx is killed "+
				"above the limit; set a limit above size", limit.String()))
		}
	}
	return out
}
