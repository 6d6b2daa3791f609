package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// validateFiles rejects masks.
func validateFiles(files []v1alpha2.File, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, file := range files {
		if ref := file.ConfigMapRef; ref != nil {
			errs = append(errs, validateNoMask(ref.Key, path.Index(i).Child("configMapRef", "key"))...)
		}
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
