package validation

import (
	"fmt"
	"regexp"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// maxFilePath is how long the schema lets a path be.
const maxFilePath = 127

// Paths as the schema demands them.
var (
	filePath  = regexp.MustCompile(`^[a-zA-Z0-9_][-._a-zA-Z0-9]*(/[a-zA-Z0-9_][-._a-zA-Z0-9]*)?$`)
	cachePath = regexp.MustCompile(`^/(var/cache|cache|data|mnt|srv)(/[a-zA-Z0-9_][-._a-zA-Z0-9]*)*$`)
)

// validateFiles holds that no file leaves its directory or stands in the way of another. There are a few at most.
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
				errs = append(errs, field.Invalid(at.Child("path"), file.Path, "is a file or the directory of one, not both; rename one of them"))
			}
		}
		if (file.ConfigMapRef == nil) == (file.SecretRef == nil) {
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, "takes exactly one of configMapRef and secretRef"))
		}
		errs = append(errs, validateKey(file.ConfigMapRef, at.Child("configMapRef"))...)
		errs = append(errs, validateKey(file.SecretRef, at.Child("secretRef"))...)
	}
	return errs
}

func validateKey(reference *v1alpha2.FileReference, path *field.Path) field.ErrorList {
	if reference == nil {
		return nil
	}
	errs := validateName(reference.Name, path.Child("name"))
	for _, message := range utilvalidation.IsConfigMapKey(reference.Key) {
		errs = append(errs, field.Invalid(path.Child("key"), reference.Key, message))
	}
	return errs
}

// validateCache holds that the volume hides nothing of the image or of the operator, and that its size is cheap to compute with.
func validateCache(cache *v1alpha2.Cache, path *field.Path) field.ErrorList {
	if cache == nil {
		return nil
	}
	var errs field.ErrorList
	if mounted := defaults.CachePath(cache); len(mounted) > maxFilePath || !cachePath.MatchString(mounted) {
		errs = append(errs, field.Invalid(path.Child("path"), field.OmitValueType{},
			"must be /var/cache, /cache, /data, /mnt or /srv, or a directory below one of these"))
	}
	if _, valid := defaults.CacheSize(cache); !valid {
		errs = append(errs, field.Invalid(path.Child("size"), field.OmitValueType{},
			"must be a number of one to five digits with the unit M, G, Mi or Gi, for example 500Mi or 2Gi"))
	}
	return errs
}

// warnFiles tells of files and of a cache that nothing uses, and of memory that they take.
func warnFiles(spec *v1alpha2.NginxOperatorSpec) []string {
	var out []string
	if len(spec.Files) > 0 && spec.Config == nil {
		out = append(out, "spec.files: nothing reads them without spec.config")
	}
	if spec.Cache == nil {
		return out
	}
	if spec.Config == nil {
		out = append(out, "spec.cache: nothing writes to it without spec.config")
	}
	size, valid := defaults.CacheSize(spec.Cache)
	if spec.Cache.InMemory && valid && spec.Resources != nil {
		if limit, ok := spec.Resources.Limits["memory"]; ok && !isEndless(limit) && limit.Cmp(size) <= 0 {
			out = append(out, fmt.Sprintf("spec.cache.inMemory: what is in the volume counts to resources.limits.memory, and a container that "+
				"needs more than %s is killed; allow more than size", limit.String()))
		}
	}
	return out
}
