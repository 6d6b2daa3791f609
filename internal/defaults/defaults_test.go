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
	spec := &v1alpha2.NginxOperatorSpec{}
	if got := Replicas(spec); got != 1 {
		t.Errorf("replicas %d", got)
	}
	if diff := cmp.Diff([]v1alpha2.Port{{Name: "http", Port: 8080, Protocol: "TCP"}}, Ports(spec)); diff != "" {
		t.Error(diff)
	}
	if got := TLS(spec); len(got) != 0 {
		t.Errorf("tls %v", got)
	}
	if got := HealthPort(spec); got != 18080 {
		t.Errorf("health port %d", got)
	}
	if got := ServiceType(spec); got != "ClusterIP" {
		t.Errorf("type of the Service %q", got)
	}
	if !HasNetworkPolicy(spec) || !HasNetworkPolicy(&v1alpha2.NginxOperatorSpec{NetworkPolicy: &v1alpha2.NetworkPolicy{}}) {
		t.Error("no NetworkPolicy")
	}
	if got := Resources(spec); got.Requests.Cpu().String() != "10m" || got.Requests.Memory().String() != "32Mi" || got.Limits != nil {
		t.Errorf("resources %+v", got)
	}
	if got, want := RolloutOf(spec), (Rollout{intstr.FromString("25%"), intstr.FromInt32(0), 600, true}); got != want {
		t.Errorf("rollout %+v", got)
	}
	if got := ConfigKey(&v1alpha2.ConfigMapKeyReference{}); got != "nginx.conf" {
		t.Errorf("key %q", got)
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

func TestHealthPortGivesWay(t *testing.T) {
	spec := &v1alpha2.NginxOperatorSpec{
		Ports: []v1alpha2.Port{{Name: "a", Port: 18080}},
		TLS:   []v1alpha2.TLS{{SecretName: "b", Port: ptr.To[int32](18081)}},
	}
	if got := HealthPort(spec); got != 18082 {
		t.Errorf("health port %d", got)
	}
}

func TestDrain(t *testing.T) {
	for seconds, want := range map[int32]Drain{5: {4, 1, 10}, 6: {5, 1, 11}, 25: {5, 20, 30}, 3600: {5, 3595, 3605}} {
		if got := DrainOf(&v1alpha2.NginxOperatorSpec{DrainSeconds: &seconds}); got != want {
			t.Errorf("%d: %+v, want %+v", seconds, got, want)
		}
	}
	if got := DrainOf(&v1alpha2.NginxOperatorSpec{}); got != (Drain{5, 20, 30}) {
		t.Errorf("default: %+v", got)
	}
}

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
