package defaults

import (
	"cmp"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// cacheSize is the pattern of the schema. Matching quantities are cheap to compute with.
var cacheSize = regexp.MustCompile(`^[1-9][0-9]{0,4}[MG]i?$`)

// CachePath returns the mount path of the cache volume.
func CachePath(cache *v1alpha2.Cache) string {
	return cmp.Or(cache.Path, v1alpha2.DefaultCachePath)
}

// CacheSize returns the size of the cache volume, and whether it is valid.
func CacheSize(cache *v1alpha2.Cache) (resource.Quantity, bool) {
	if !cacheSize.MatchString(cache.Size) {
		return resource.Quantity{}, false
	}
	return resource.MustParse(cache.Size), true
}

// CacheMedium returns the storage medium of the cache volume.
func CacheMedium(cache *v1alpha2.Cache) corev1.StorageMedium {
	if cache.InMemory {
		return corev1.StorageMediumMemory
	}
	return corev1.StorageMediumDefault
}
