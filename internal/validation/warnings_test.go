package validation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWarnings(t *testing.T) {
	const helpers = "initContainers: [{name: clone, image: 'docker.io/alpine/git:2.49.1'}, {name: same}]\n" +
		"sidecars: [{name: other, image: 'registry.example.com/busybox:1'}, {name: ship, image: 'busybox:1.36'}]\n"
	const asRoot = "%s: %s runs as root, and the kubelet does not start such a container (runAsNonRoot); set " +
		"spec.securityContext.runAsUser, for example 101, unless the cluster sets a user, as OpenShift does"
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"empty": {spec: "{}"},
		"nothing unused": {
			spec: "{tls: [{secretName: shop}], content: {configMapRef: {name: pages}}, image: 'registry.example.com/nginx:1', drainSeconds: 600}",
		},
		"moving tag": {
			spec: "image: quay.io/me/nginx:latest",
			want: []string{
				"spec.image: the tag is latest, so the image can change at any time, and differ between Pods; use a version or a digest",
			},
		},
		"no tag": {
			spec: "image: quay.io/me/nginx",
			want: []string{
				"spec.image: the image has no tag, which means latest, so the image can change at any time, and differ between Pods; use a version " +
					"or a digest",
			},
		},
		"digest": {spec: "image: quay.io/me/nginx@sha256:" + strings.Repeat("a", 64)},
		"long drain": {
			spec: "drainSeconds: 3600",
			want: []string{
				"spec.drainSeconds: draining a node can wait 3600 seconds for each Pod, and the cluster autoscaler gives up after 600 seconds",
			},
		},
		"little memory": {
			spec: "resources: {limits: {memory: 8Mi}}",
			want: []string{"spec.resources.limits[memory]: nginx may not start with 8Mi; set 16Mi or more"},
		},
		"annotation of no use": {
			spec: "podTemplate: {annotations: {seccomp.security.alpha.kubernetes.io/pod: runtime/default}}",
			want: []string{"spec.podTemplate.annotations[seccomp.security.alpha.kubernetes.io/pod]: Kubernetes ignores this annotation; remove it"},
		},
		"certificate of no use": {spec: "tls: [{secretName: a}, {secretName: b}]", want: []string{
			"spec.tls[1]: a certificate without a port has no effect without spec.config; set a port",
		}},
		"unused with a configuration": {spec: servers + "content: {configMapRef: {name: pages}}\ntls: [{secretName: shop}]", want: []string{
			"spec.content: the configuration does not reference /usr/share/nginx/html, so the content is not served; add `root " +
				"/usr/share/nginx/html;`",
			"spec.tls[0]: the configuration does not reference /etc/nginx/tls/shop, so the certificate is not served; " +
				"set ssl_certificate and ssl_certificate_key",
		}},
		"unused as far as is known": {
			spec: "config: {inline: 'server { listen 8080; include /etc/nginx/files/a.conf; }'}\n" +
				"files: [{path: a.conf, configMapRef: {name: a, key: b}}]\ncontent: {configMapRef: {name: pages}}\ntls: [{secretName: shop}]",
		},
		"connections": {spec: "nginx: {workerConnections: 1025}", want: []string{
			"spec.nginx.workerConnections: a connection is an open file, and with the usual limit of 1024 open files (ulimit -n in the " +
				"container) a worker gets at most that many; raise the limit of the container runtime on the nodes, or add workers or replicas",
		}},
		"usual connections": {spec: "nginx: {workerConnections: 1024}"},
		"configuration": {spec: "config: {inline: 'server { listen 8080 http2; }'}", want: []string{
			"spec.config.inline: line 1: listen: the parameter http2 is deprecated; remove it and write `http2 on;` in the server",
		}},
		"files and a cache without a configuration": {
			spec: "{files: [{path: a, secretRef: {name: a, key: b}}], cache: {size: 1Gi}}",
			want: []string{
				"spec.files: files have no effect without spec.config", "spec.cache: a cache has no effect without spec.config",
			},
		},
		"cache as large as the memory": {
			spec: "{cache: {size: 1Gi, inMemory: true}, resources: {limits: {memory: 1Gi}}, config: {configMapRef: {name: a}}}",
			want: []string{
				"spec.cache.inMemory: the content counts toward resources.limits.memory (1Gi), and nginx is killed above the limit; set a limit " +
					"above size",
			},
		},
		"cache on a disk": {
			spec: "{cache: {size: 1Gi}, resources: {limits: {memory: 1Gi}}, config: {configMapRef: {name: a}}}",
		},
		"cache smaller than the memory": {
			spec: "{cache: {size: 1Gi, inMemory: true}, resources: {limits: {memory: 2Gi}}, config: {configMapRef: {name: a}}}",
		},
		"cache without a limit": {spec: "{cache: {size: 1Gi, inMemory: true}, config: {configMapRef: {name: a}}}"},
		"image of root": {
			spec: "image: 'nginx:1.30.7'", want: []string{fmt.Sprintf(asRoot, "spec.image", "docker.io/library/nginx")},
		},
		"unprivileged image": {spec: "image: 'docker.io/nginxinc/nginx-unprivileged:1.30.7'"},
		"helpers of root": {spec: helpers, want: []string{
			fmt.Sprintf(asRoot, "spec.initContainers[0].image", "docker.io/alpine/git"),
			fmt.Sprintf(asRoot, "spec.sidecars[1].image", "docker.io/library/busybox"),
		}},
		"user":         {spec: helpers + "securityContext: {runAsUser: 101}"},
		"patched user": {spec: helpers + "patches: [{target: {kind: Deployment}, patch: 'spec: {runAsUser: 101}'}]"},
		"group": {
			spec: "image: 'nginx:1.30.7'\nsecurityContext: {runAsGroup: 101}",
			want: []string{fmt.Sprintf(asRoot, "spec.image", "docker.io/library/nginx")},
		},
		"patch of another child": {
			spec: "image: 'nginx:1.30.7'\npatches: [{target: {kind: Service}, patch: runAsUser}]",
			want: []string{fmt.Sprintf(asRoot, "spec.image", "docker.io/library/nginx")},
		},
		"paused": {spec: "paused: true", want: []string{"spec.paused: changes are not applied until it is false"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Warnings(specOf(t, test.spec), nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
