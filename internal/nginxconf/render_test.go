package nginxconf

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
)

func TestRender(t *testing.T) {
	servers := "server {\n    listen 8080;\n}\n"
	for name, test := range map[string]struct {
		spec    v1alpha2.NginxOperatorSpec
		servers string
		ipv6    bool
	}{
		"ports": {spec: v1alpha2.NginxOperatorSpec{
			Ports: []v1alpha2.Port{{Name: "http", Port: 8080}, {Name: "admin", Port: 18080}}, DrainSeconds: ptr.To[int32](60),
		}},
		"tls": {ipv6: true, spec: v1alpha2.NginxOperatorSpec{
			TLS: []v1alpha2.TLS{{SecretName: "shop"}, {SecretName: "mounted-only"}},
		}},
		"target-port": {spec: v1alpha2.NginxOperatorSpec{
			Ports: []v1alpha2.Port{{Name: "http", Port: 80, TargetPort: ptr.To[int32](18080)}},
			TLS:   []v1alpha2.TLS{{SecretName: "shop", Port: ptr.To[int32](443), TargetPort: ptr.To[int32](8443)}},
		}},
		"no-plain-http": {ipv6: true, spec: v1alpha2.NginxOperatorSpec{
			Ports: []v1alpha2.Port{}, TLS: []v1alpha2.TLS{{SecretName: "shop"}},
		}},
		"monitoring": {servers: servers, spec: v1alpha2.NginxOperatorSpec{Monitoring: &v1alpha2.Monitoring{}}},
		"two-tls-ports": {spec: v1alpha2.NginxOperatorSpec{
			Ports: []v1alpha2.Port{{Name: "https", Port: 9443, AppProtocol: "https"}},
			TLS:   []v1alpha2.TLS{{SecretName: "shop", Port: ptr.To[int32](8443)}, {SecretName: "other"}},
		}},
		"config": {
			servers: servers, spec: v1alpha2.NginxOperatorSpec{TLS: []v1alpha2.TLS{{SecretName: "shop", Port: ptr.To[int32](8443)}}},
		},
		"config-given": {servers: "access_log /dev/stdout main; # twice\nsendfile off;\nproxy_temp_path /tmp/p;\n" + servers, ipv6: true},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := Render(&test.spec, Whole(test.servers), test.ipv6, nil)
			if err != nil {
				t.Fatal(err)
			}
			if servers := files[ServersFile]; servers != test.servers {
				t.Errorf("the user's text was changed to %q", servers)
			}
			fixture.Golden(t, name+".conf", files[MainFile])
		})
	}
}

// TestDirectives verifies the directives in the main and events contexts, and the access log, that
// fields of the spec set.
func TestDirectives(t *testing.T) {
	tuned := v1alpha2.Nginx{
		WorkerProcesses: ptr.To[int32](3), WorkerConnections: ptr.To[int32](4096), ErrorLogLevel: "warn", AccessLog: ptr.To(false),
	}
	tests := map[string]v1alpha2.NginxOperatorSpec{
		"access_log off;":                                       {Nginx: &tuned},
		"worker_processes 3;":                                   {Nginx: &tuned, Resources: cpuLimit("2")},
		"worker_connections 4096;":                              {Nginx: &tuned},
		"error_log /dev/stderr warn;":                           {Nginx: &tuned},
		"s;\nenv TZ;\nenv A.b;\n\nevents {":                     {Env: []v1alpha2.EnvVar{{Name: "TZ"}, {Name: "A.b"}}},
		"error_log /dev/stderr notice;\nworker_processes auto;": {Nginx: &v1alpha2.Nginx{ErrorLogLevel: "notice; env A"}},
	}
	for want, spec := range tests {
		files, err := Render(&spec, nil, false, nil)
		if err != nil || !strings.Contains(files[MainFile], want) {
			t.Errorf("%v: there is no %q in\n%s", err, want, files[MainFile])
		}
	}
}

func cpuLimit(limit string) *corev1.ResourceRequirements {
	return &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limit)}}
}

// TestWorkers verifies that nginx gets one worker process for each CPU of the container's limit.
func TestWorkers(t *testing.T) {
	if count := workers(&v1alpha2.NginxOperatorSpec{}); count != 0 {
		t.Errorf("%d without a limit", count)
	}
	for limit, want := range map[string]int{
		"0": 0, "1n": 1, "100m": 1, "1": 1, "1001m": 2, "1500m": 2, "3000m": 3, "7": 7, "29000m": 29,
		"1k": 1000, "1025": 1024, "5Gi": 1024, "1e300": 1024, "1e100000": 1024,
	} {
		if count := workers(&v1alpha2.NginxOperatorSpec{Resources: cpuLimit(limit)}); count != want {
			t.Errorf("limit %q: %d, want %d", limit, count, want)
		}
	}
}
