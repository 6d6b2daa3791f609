package validation

import (
	"strings"
	"testing"

	"github.com/example/nginx-operator/internal/fixture"
)

// TestWarnings verifies the warnings about valid specs: testdata/warnings.txt.
func TestWarnings(t *testing.T) {
	const helpers = "initContainers: [{name: clone, image: 'docker.io/alpine/git:2.49.1'}, {name: same}]\n" +
		"sidecars: [{name: other, image: 'registry.example.com/busybox:1'}, {name: ship, image: 'busybox:1.36'}]\n"
	for name, text := range map[string]string{
		"empty": "{}",
		"nothing unused": "{tls: [{secretName: shop}], content: {configMapRef: {name: pages}}, " +
			"image: 'registry.example.com/nginx:1', drainSeconds: 600}",
		"digest": "image: quay.io/me/nginx@sha256:" + strings.Repeat("a", 64),
		"unused as far as is known": "config: {inline: 'server { listen 8080; include /etc/nginx/files/a.conf; }'}\n" +
			"files: [{path: a.conf, configMapRef: {name: a, key: b}}]\ncontent: {configMapRef: {name: pages}}\ntls: [{secretName: shop}]",
		"usual connections":   "nginx: {workerConnections: 1024}",
		"limit of open files": "nginx: {workerConnections: 65535, main: worker_rlimit_nofile 65535;}",
		"files of the main context": "{nginx: {main: include /etc/nginx/files/a;}, " +
			"files: [{path: a, configMapRef: {name: a, key: b}}]}",
		"cache on a disk": "{cache: {size: 1Gi}, resources: {limits: {memory: 1Gi}}, config: {configMapRef: {name: a}}}",
		"cache smaller than the memory": "{cache: {size: 1Gi, inMemory: true}, resources: {limits: {memory: 2Gi}}, " +
			"config: {configMapRef: {name: a}}}",
		"cache without a limit": "{cache: {size: 1Gi, inMemory: true}, config: {configMapRef: {name: a}}}",
		"unprivileged image":    "image: 'docker.io/nginxinc/nginx-unprivileged:1.30.7'",
		"user":                  helpers + "securityContext: {runAsUser: 101}",
		"patched user":          helpers + "patches: [{target: {kind: Deployment}, patch: 'spec: {runAsUser: 101}'}]",
	} {
		if warnings := Warnings(specOf(t, text), nil); len(warnings) > 0 {
			t.Errorf("%s: %q", name, warnings)
		}
	}

	cases := map[string]fixture.Case{}
	for name, text := range map[string]string{
		"moving tag":            "image: quay.io/me/nginx:latest",
		"no tag":                "image: quay.io/me/nginx",
		"long drain":            "drainSeconds: 3600",
		"little memory":         "resources: {limits: {memory: 8Mi}}",
		"annotation of no use":  "podTemplate: {annotations: {seccomp.security.alpha.kubernetes.io/pod: runtime/default}}",
		"certificate of no use": "tls: [{secretName: a}, {secretName: b}]",
		"connections":           "nginx: {workerConnections: 1025}",
		"names of values":       "config: {inline: 'server { listen 8080; return 200 ${A}; }', values: [{name: B, value: b}]}",
		"resolver of no use":    "nginx: {resolver: {valid: 5s}}",
		"low limit":             "nginx: {workerConnections: 4096, main: worker_rlimit_nofile 2048;}",
		"main and events":       "nginx: {main: worker_priority -5;, events: debug_connection 127.0.0.1;}",
		"files and a cache without a configuration": "{files: [{path: a, secretRef: {name: a, key: b}}], cache: {size: 1Gi}}",
		"cache as large as the memory": "{cache: {size: 1Gi, inMemory: true}, resources: {limits: {memory: 1Gi}}, " +
			"config: {configMapRef: {name: a}}}",
		"image of root":          "image: 'nginx:1.30.7'",
		"helpers of root":        helpers,
		"group":                  "image: 'nginx:1.30.7'\nsecurityContext: {runAsGroup: 101}",
		"patch of another child": "image: 'nginx:1.30.7'\npatches: [{target: {kind: Service}, patch: runAsUser}]",
		"paused":                 "paused: true",
	} {
		cases[name] = fixture.Case{Input: text, Messages: Warnings(specOf(t, text), nil)}
	}
	fixture.GoldenCases(t, "warnings.txt", cases)
}

// TestWarningsOfConfigurations verifies that a warning about a configuration has the field that it
// is about. internal/nginxconf has the messages.
func TestWarningsOfConfigurations(t *testing.T) {
	for text, want := range map[string][]string{
		servers + "content: {configMapRef: {name: pages}}\ntls: [{secretName: shop}]": {"spec.content: ", "spec.tls[0]: "},
		"config: {inline: 'server { listen 8080 http2; }'}":                           {"spec.config.inline: line 1: "},
	} {
		warnings := Warnings(specOf(t, text), nil)
		if len(warnings) != len(want) {
			t.Fatalf("%s: %q, want %q", text, warnings, want)
		}
		for i := range want {
			if !strings.HasPrefix(warnings[i], want[i]) {
				t.Errorf("want %q, got %q", want[i], warnings[i])
			}
		}
	}
}
