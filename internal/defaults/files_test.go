package defaults

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

func TestCacheOf(t *testing.T) {
	if got := CachePath(&v1alpha2.Cache{}); got != "/var/cache/nginx" {
		t.Errorf("path %q", got)
	}
	if got := CacheMedium(&v1alpha2.Cache{}); got != corev1.StorageMediumDefault {
		t.Errorf("medium %q", got)
	}
	if got := CacheMedium(&v1alpha2.Cache{InMemory: true}); got != corev1.StorageMediumMemory {
		t.Errorf("medium %q", got)
	}
	for size, bytes := range map[string]int64{
		"1M": 1e6, "200Mi": 200 << 20, "99999Gi": 99999 << 30, "": 0, "0Mi": 0, "1": 0, "1e9": 0, "1Ti": 0, "100000Mi": 0, "-1Gi": 0, "1.5Gi": 0,
	} {
		got, valid := CacheSize(&v1alpha2.Cache{Size: size})
		if valid != (bytes > 0) || got.Value() != bytes {
			t.Errorf("%q: %s, %t", size, got.String(), valid)
		}
	}
}
