package migrate

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const configMaps = `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: main}
data:
  nginx.conf: "http { gzip on; include /etc/nginx/conf.d/*.conf; }"
  relative: "http { include conf.d/*.conf; }"
  one: "http { include conf.d/b.conf; }"
  alone: "http { server { listen 8080; } }"
  mime: "types {}"
---
apiVersion: v1
kind: ConfigMap
metadata: {name: sites}
data:
  b.conf: "server { listen 8080; }"
  a.conf: "map $host $a { default 1; }"
  common.inc: "expires 1h;"
`

// TestMounts verifies that each mount is converted or listed, whatever the order of the mounts.
func TestMounts(t *testing.T) {
	for name, test := range map[string]struct {
		mounts, volumes, spec string
		says                  []string
	}{
		"a directory of server blocks": {
			"{name: s, mountPath: /etc/nginx/conf.d}", "{name: s, configMap: {name: sites}}",
			`config: {inline: "map $host $a { default 1; }\nserver { listen 8080; }"}`,
			[]string{"ConfigMap sites, /etc/nginx/conf.d/common.inc: if the configuration includes it, move it to spec.config or spec.files"},
		},
		"server blocks before nginx.conf": {
			"{name: s, mountPath: /etc/nginx/conf.d/b.conf, subPath: b.conf}, {name: m, mountPath: /etc/nginx/nginx.conf, subPath: nginx.conf}",
			"{name: s, configMap: {name: sites}}, {name: m, configMap: {name: main}}",
			`config: {inline: "gzip on;\nserver { listen 8080; }"}`, nil,
		},
		"nginx.conf before server blocks": {
			"{name: m, mountPath: /etc/nginx/nginx.conf, subPath: relative}, {name: s, mountPath: /etc/nginx/conf.d}",
			"{name: s, configMap: {name: sites, items: [{key: b.conf, path: z.conf}]}}, {name: m, configMap: {name: main}}",
			`config: {inline: "server { listen 8080; }"}`, nil,
		},
		"server blocks that nginx.conf does not include": {
			"{name: m, mountPath: /etc/nginx/nginx.conf, subPath: alone}, {name: s, mountPath: /etc/nginx/conf.d/b.conf, subPath: b.conf}",
			"{name: s, configMap: {name: sites}}, {name: m, configMap: {name: main}}",
			`config: {inline: "server {\n  listen 8080;\n}\n"}`,
			[]string{"/etc/nginx/conf.d/b.conf: the http block of nginx.conf does not include it; if another block or file does"},
		},
		"keys with other paths": {
			"{name: m, mountPath: /etc/nginx}",
			"{name: m, configMap: {name: main, items: [{key: alone, path: nginx.conf}, {key: mime, path: mime.types}]}}",
			`config: {inline: "server {\n  listen 8080;\n}\n"}`,
			[]string{"ConfigMap main, /etc/nginx/mime.types: if the configuration includes it"},
		},
		"server blocks that are not in a ConfigMap": {
			"{name: s, mountPath: /etc/nginx/conf.d}", "{name: s, secret: {secretName: sites}}",
			`{config: {inline: "include /etc/nginx/conf.d/*.conf;\n"},
			volumes: [{name: s, mountPath: /etc/nginx/conf.d, secret: {secretName: sites}}]}`, nil,
		},
		"server blocks of two sources": {
			"{name: s, mountPath: /etc/nginx/conf.d/b.conf, subPath: b.conf}, {name: a, mountPath: /etc/nginx/conf.d/auth.conf, subPath: auth.conf}",
			"{name: s, configMap: {name: sites}}, {name: a, secret: {secretName: auth}}",
			`{config: {inline: "server { listen 8080; }\ninclude /etc/nginx/conf.d/auth.conf;\n"},
			volumes: [{name: a, mountPath: /etc/nginx/conf.d/auth.conf, subPath: auth.conf, secret: {secretName: auth}}]}`, nil,
		},
		"server blocks of two sources that nginx.conf includes": {
			"{name: m, mountPath: /etc/nginx/nginx.conf, subPath: nginx.conf}, {name: a, mountPath: /etc/nginx/conf.d}, " +
				"{name: s, mountPath: /etc/nginx/conf.d/b.conf, subPath: b.conf}",
			"{name: m, configMap: {name: main}}, {name: s, configMap: {name: sites}}, {name: a, secret: {secretName: auth}}",
			`{config: {inline: "gzip on;\nserver { listen 8080; }\ninclude /etc/nginx/conf.d/*.conf;\n"},
			volumes: [{name: a, mountPath: /etc/nginx/conf.d, secret: {secretName: auth}}]}`, nil,
		},
		"an include that stays in nginx.conf": {
			"{name: m, mountPath: /etc/nginx/nginx.conf, subPath: nginx.conf}, {name: a, mountPath: /etc/nginx/conf.d}",
			"{name: m, configMap: {name: main}}, {name: a, secret: {secretName: auth}}",
			`{config: {inline: "gzip on;\ninclude /etc/nginx/conf.d/*.conf;\n"},
			volumes: [{name: a, mountPath: /etc/nginx/conf.d, secret: {secretName: auth}}]}`, nil,
		},
		"a file that nginx.conf includes by name": {
			"{name: m, mountPath: /etc/nginx/nginx.conf, subPath: one}, {name: s, mountPath: /etc/nginx/conf.d}",
			"{name: s, configMap: {name: sites, items: [{key: a.conf, path: a.conf}, {key: b.conf, path: b.conf}]}}, " +
				"{name: m, configMap: {name: main}}",
			`config: {inline: "server { listen 8080; }"}`,
			[]string{"/etc/nginx/conf.d/a.conf: the http block of nginx.conf does not include it"},
		},
		"files that nginx does not include": {
			"{name: a, mountPath: /etc/nginx/conf.d/htpasswd, subPath: htpasswd}, {name: b, mountPath: /etc/nginx/conf.d/certs}",
			"{name: a, secret: {secretName: users}}, {name: b, secret: {secretName: tls}}",
			`{volumes: [{name: a, mountPath: /etc/nginx/conf.d/htpasswd, subPath: htpasswd, secret: {secretName: users}},
			{name: b, mountPath: /etc/nginx/conf.d/certs, secret: {secretName: tls}}]}`, nil,
		},
		"nginx.conf in a Secret": {
			"{name: s, mountPath: /etc/nginx/nginx.conf, subPath: nginx.conf}", "{name: s, secret: {secretName: main}}",
			`{volumes: [{name: s, mountPath: /etc/nginx/nginx.conf, subPath: nginx.conf, secret: {secretName: main}}]}`,
			[]string{"volumeMounts[0]: /etc/nginx/nginx.conf: " + ownMain},
		},
		"nginx.conf in an emptyDir": {
			"{name: s, mountPath: /etc/nginx}", "{name: s, emptyDir: {}}",
			`{volumes: [{name: s, mountPath: /etc/nginx, emptyDir: {}}]}`,
			[]string{"volumeMounts[0]: /etc/nginx: " + ownMain, "spec.volumes[0].mountPath: Forbidden"},
		},
		"templates": {
			"{name: s, mountPath: /etc/nginx/templates}", "{name: s, configMap: {name: sites}}",
			`{volumes: [{name: s, mountPath: /etc/nginx/templates, configMap: {name: sites}}]}`,
			[]string{"volumeMounts[0]: /etc/nginx/templates: the operator does not run the entry point, which fills in templates"},
		},
		"a volume at two paths": {
			"{name: v, mountPath: /a, subPath: x}, {name: v, mountPath: /b, readOnly: true}", "{name: v, persistentVolumeClaim: {claimName: c}}",
			`{volumes: [{name: v, mountPath: /a, subPath: x, persistentVolumeClaim: {claimName: c}}]}`,
			[]string{"volumeMounts[1]: /b: spec.volumes mounts a volume only once; add a volume with another name"},
		},
		"a volume that does not exist": {
			"{name: v, mountPath: /a}", "", `{}`, []string{`volumeMounts[0].name: the Pod has no volume "v"`},
		},
		"temporary files": {
			"{name: t, mountPath: /tmp}, {name: u, mountPath: /tmp/u}", "{name: t, emptyDir: {sizeLimit: 1Gi}}, {name: u, emptyDir: {}}",
			`{volumes: [{name: u, mountPath: /tmp/u, emptyDir: {}}]}`,
			[]string{"emptyDir.sizeLimit: the operator mounts its own volume at /tmp, which has no settings", "not valid"},
		},
		"some static files": {
			"{name: v, mountPath: /usr/share/nginx/html}", "{name: v, configMap: {name: c, items: [{key: a, path: index.html}]}}",
			`content: {configMapRef: {name: c, items: [{key: a, path: index.html}]}}`, nil,
		},
		"keys of a ConfigMap in directories": {
			"{name: v, mountPath: /usr/share/nginx/html}", "{name: v, configMap: {name: c, items: [{key: b, path: css/b.css}, {key: a, path: a}]}}",
			`content: {configMapRef: {name: c, items: [{key: a, path: a}, {key: b, path: css/b.css}]}}`, nil,
		},
		"a key of a ConfigMap with a mode": {
			"{name: v, mountPath: /usr/share/nginx/html}", "{name: v, configMap: {name: c, items: [{key: a, path: a, mode: 384}]}}",
			`{volumes: [{name: v, mountPath: /usr/share/nginx/html, configMap: {name: c, items: [{key: a, path: a}]}}]}`,
			[]string{"mode"},
		},
		"a cache": {
			"{name: v, mountPath: /var/cache/nginx}", "{name: v, emptyDir: {sizeLimit: 1.5Gi}}",
			`{cache: {path: /var/cache/nginx, size: 1536Mi}}`, nil,
		},
		"volumes that a sidecar shares": {
			"{name: v, mountPath: /var/cache/nginx}, {name: t, mountPath: /tmp}",
			"{name: v, emptyDir: {sizeLimit: 1Gi}}, {name: t, emptyDir: {}}], initContainers: [{name: i, " + unprivileged +
				", volumeMounts: [{name: v, mountPath: /a}, {name: t, mountPath: /b}]}",
			`{volumes: [{name: v, mountPath: /var/cache/nginx, emptyDir: {sizeLimit: 1Gi}}, {name: t, emptyDir: {}}],
			initContainers: [{name: i, ` + unprivileged + `, volumeMounts: [{name: v, mountPath: /a}, {name: t, mountPath: /b}]}]}`,
			[]string{"/tmp: the operator mounts its own volume here, which other containers do not share; use another path"},
		},
		"a cache without a size": {
			"{name: v, mountPath: /var/cache/nginx}", "{name: v, emptyDir: {}}",
			`{volumes: [{name: v, mountPath: /var/cache/nginx, emptyDir: {}}]}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := only(t, deployment("volumes: ["+test.volumes+"], ", unprivileged+", volumeMounts: ["+test.mounts+"]")+configMaps)
			var want v1alpha2.NginxOperatorSpec
			if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(test.spec, "\t", "")), &want); err != nil {
				t.Fatal(err)
			}
			want.Image = result.Object.Spec.Image
			if diff := cmp.Diff(want, result.Object.Spec); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			said := slices.Concat(result.Lost, result.Check)
			for _, text := range test.says {
				if !strings.Contains(strings.Join(said, "\n"), text) {
					t.Errorf("no comment says %q: %q", text, said)
				}
			}
			if len(said) != len(test.says) {
				t.Errorf("%d comments, want %d: %q", len(said), len(test.says), said)
			}
		})
	}
}
