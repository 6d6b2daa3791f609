package defaults

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

func TestEmptySpec(t *testing.T) {
	spec, cache := &v1alpha2.NginxOperatorSpec{}, &v1alpha2.Cache{}
	resources := Resources(spec)
	defaults := []any{
		Replicas(spec), Ports(spec), len(TLS(spec)), HealthPort(spec), ServiceType(spec), RolloutOf(spec), DrainOf(spec),
		HasNetworkPolicy(spec), HasNetworkPolicy(&v1alpha2.NginxOperatorSpec{NetworkPolicy: &v1alpha2.NetworkPolicy{}}),
		resources.Requests.Cpu().String(), resources.Requests.Memory().String(), len(resources.Limits),
		ConfigKey(&v1alpha2.ConfigMapKeyReference{}), CachePath(cache), CacheMedium(cache),
	}
	ports := []v1alpha2.Port{{Name: "http", Port: 8080, Protocol: "TCP"}}
	rollout, drain := Rollout{intstr.FromString("25%"), intstr.FromInt32(0), 600, true}, Drain{5, 20, 30}
	want := []any{
		int32(1), ports, 0, int32(18080), corev1.ServiceTypeClusterIP, rollout, drain, true, true,
		"10m", "32Mi", 0, "nginx.conf", "/var/cache/nginx", corev1.StorageMediumDefault,
	}
	if diff := cmp.Diff(want, defaults); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTLSPort verifies that the first certificate has a default port, but only if the operator's
// own server listens on it.
func TestTLSPort(t *testing.T) {
	two := []v1alpha2.TLS{{SecretName: "a"}, {SecretName: "b"}}
	spec := &v1alpha2.NginxOperatorSpec{TLS: two}
	if diff := cmp.Diff([]v1alpha2.TLS{{SecretName: "a", Port: ptr.To[int32](8443)}, {SecretName: "b"}}, TLS(spec)); diff != "" {
		t.Error(diff)
	}
	if two[0].Port != nil {
		t.Error("the spec itself was changed")
	}
	spec.Config = &v1alpha2.Config{Inline: "server {}"}
	if diff := cmp.Diff(two, TLS(spec)); diff != "" {
		t.Error(diff)
	}
	given := &v1alpha2.NginxOperatorSpec{TLS: []v1alpha2.TLS{{SecretName: "a"}, {SecretName: "b", Port: ptr.To[int32](443)}}}
	if diff := cmp.Diff(given.TLS, TLS(given)); diff != "" {
		t.Error(diff)
	}
}

// TestTLSPortStays verifies that an update that adds a config keeps the default port of the first
// certificate, and adds no port to others.
func TestTLSPortStays(t *testing.T) {
	port := ptr.To[int32](8443)
	bare := func(names ...string) (out []v1alpha2.TLS) {
		for _, name := range names {
			out = append(out, v1alpha2.TLS{SecretName: name})
		}
		return out
	}
	config := &v1alpha2.Config{Inline: "server {}"}
	for name, test := range map[string]struct{ old, updated, want v1alpha2.NginxOperatorSpec }{
		"a config is added": {
			old: v1alpha2.NginxOperatorSpec{TLS: bare("a", "b")}, updated: v1alpha2.NginxOperatorSpec{TLS: bare("a", "b"), Config: config},
			want: v1alpha2.NginxOperatorSpec{TLS: []v1alpha2.TLS{{SecretName: "a", Port: port}, {SecretName: "b"}}},
		},
		"the config stays": {
			old: v1alpha2.NginxOperatorSpec{TLS: bare("a"), Config: config}, updated: v1alpha2.NginxOperatorSpec{TLS: bare("a"), Config: config},
			want: v1alpha2.NginxOperatorSpec{TLS: bare("a")},
		},
		"no config": {
			old: v1alpha2.NginxOperatorSpec{TLS: bare("a")}, updated: v1alpha2.NginxOperatorSpec{TLS: bare("a")},
			want: v1alpha2.NginxOperatorSpec{TLS: bare("a")},
		},
		"another certificate": {
			old: v1alpha2.NginxOperatorSpec{TLS: bare("a")}, updated: v1alpha2.NginxOperatorSpec{TLS: bare("b"), Config: config},
			want: v1alpha2.NginxOperatorSpec{TLS: bare("b")},
		},
		"no certificate": {
			old: v1alpha2.NginxOperatorSpec{TLS: bare("a")}, updated: v1alpha2.NginxOperatorSpec{Config: config},
		},
	} {
		if diff := cmp.Diff(test.want.TLS, KeepTLS(&test.old, &test.updated)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestGivenResources verifies that the given resources replace the default completely.
func TestGivenResources(t *testing.T) {
	limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	spec := &v1alpha2.NginxOperatorSpec{Resources: &corev1.ResourceRequirements{Limits: limits}}
	if diff := cmp.Diff(*spec.Resources, Resources(spec)); diff != "" {
		t.Error(diff)
	}
	Resources(spec).Limits[corev1.ResourceCPU] = resource.MustParse("1")
	if len(spec.Resources.Limits) != 1 {
		t.Error("the spec itself was changed")
	}
}

func TestDrain(t *testing.T) {
	for seconds, want := range map[int32]Drain{5: {4, 1, 10}, 6: {5, 1, 11}, 25: {5, 20, 30}, 3600: {5, 3595, 3605}} {
		if got := DrainOf(&v1alpha2.NginxOperatorSpec{DrainSeconds: &seconds}); got != want {
			t.Errorf("%d: %+v, want %+v", seconds, got, want)
		}
	}
}

func TestCacheOf(t *testing.T) {
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
