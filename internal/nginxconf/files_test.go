package nginxconf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// withFiles returns a spec with files from a ConfigMap.
func withFiles(paths ...string) v1alpha2.NginxOperatorSpec {
	spec := v1alpha2.NginxOperatorSpec{}
	for _, path := range paths {
		spec.Files = append(spec.Files, v1alpha2.File{Path: path, ConfigMapRef: &v1alpha2.FileReference{Name: "a", Key: "b"}})
	}
	return spec
}

// withImage returns the spec with an image whose content is unknown.
func withImage(spec v1alpha2.NginxOperatorSpec) v1alpha2.NginxOperatorSpec {
	spec.Image = "registry.example.com/nginx:1"
	return spec
}

func TestDeclaredFiles(t *testing.T) {
	const inImage = "is in the image, so that it is not checked before nginx reads it"
	testChecks(t, map[string]checked{
		"declared": {spec: withFiles("a.conf", "snippets/b.conf", "htpasswd", "dhparam.pem"), text: inServer(
			"include /etc/nginx/files/a.conf;", "include /etc/nginx/files/snippets/*.conf;",
			"auth_basic_user_file /etc/nginx/files/htpasswd;", "ssl_dhparam /etc/nginx/files/dhparam.pem;",
		)},
		"not declared": {spec: withFiles("a.conf"), text: inServer(
			"include /etc/nginx/files/b.conf;", "auth_basic_user_file /etc/nginx/files/htpasswd;",
			"ssl_dhparam /etc/nginx/files/../files/dhparam.pem;",
		), want: []string{
			"line 2: include: /etc/nginx/files/b.conf is not among spec.files; add `- path: b.conf` there, with a configMapRef or a secretRef",
			"line 3: auth_basic_user_file: /etc/nginx/files/htpasswd is not among spec.files; add `- path: htpasswd` there, " +
				"with a configMapRef or a secretRef",
			"line 4: ssl_dhparam: /etc/nginx/files/../files/dhparam.pem is not among spec.files; add `- path: dhparam.pem` there, " +
				"with a configMapRef or a secretRef",
		}},
		"nothing declared": {text: inServer("include /etc/nginx/files/b.conf;"), want: []string{
			"line 2: include: /etc/nginx/files/b.conf is not among spec.files; add `- path: b.conf` there, with a configMapRef or a secretRef",
		}},
		"nothing declared, read for each request": {
			text:     inServer("auth_basic_user_file /etc/nginx/files/htpasswd;"),
			warnings: []string{"line 2: auth_basic_user_file: /etc/nginx/files/htpasswd does not exist; declare it in spec.files"},
		},
		"in a map": {spec: withFiles("a"), text: inHTTP("map $uri $x { include /etc/nginx/files/b; }"), want: []string{
			"line 1: include: /etc/nginx/files/b is not among spec.files; add `- path: b` there, with a configMapRef or a secretRef",
		}},
		"own image with files of its own": {spec: withImage(withFiles()), text: inServer("include /etc/nginx/files/b.conf;"), warnings: []string{
			"line 2: include: /etc/nginx/files/b.conf " + inImage,
		}},
		"own image whose files are hidden": {spec: withImage(withFiles("a")), text: inServer("include /etc/nginx/files/b.conf;"), want: []string{
			"line 2: include: /etc/nginx/files/b.conf is not among spec.files; add `- path: b.conf` there, with a configMapRef or a secretRef",
		}},
		"mask that stands for nothing": {
			spec: withFiles("a.conf"), text: inServer("include /etc/nginx/files/*.inc;"),
			warnings: []string{"line 2: include: /etc/nginx/files/*.inc names no file of spec.files"},
		},
		"mask that is none": {
			spec: withFiles("a.conf"), text: inServer("include /etc/nginx/files/[a;"),
			warnings: []string{"line 2: include: /etc/nginx/files/[a names no file of spec.files"},
		},
		"name in a variable": {spec: withFiles("a"), text: inServer("auth_basic_user_file /etc/nginx/files/$host;")},
		"port that a file may listen on": {spec: withFiles("a.conf"), text: "include /etc/nginx/files/a.conf;", warnings: []string{
			"listen: port 8080 (the default of spec.ports): no server in the text listens on it; be sure that an included file does",
		}},
	})
}

func TestCache(t *testing.T) {
	const evicted = "it has no max_size, and once the volume of spec.cache is full, the Pod is evicted, or with inMemory its writes fail; " +
		"add one that is less than its size"
	const readOnly = "is on a read-only file system; declare a volume there in spec.cache, " +
		"or write below /tmp, for example"
	spec := v1alpha2.NginxOperatorSpec{Cache: &v1alpha2.Cache{}}
	testChecks(t, map[string]checked{
		"at the default path": {spec: spec, text: inHTTP("proxy_cache_path /var/cache/nginx keys_zone=a:1m max_size=1m;")},
		"below it":            {spec: spec, text: inHTTP("proxy_cache_path /var/cache/nginx/a keys_zone=a:1m max_size=1m;")},
		"at another path": {
			spec: v1alpha2.NginxOperatorSpec{Cache: &v1alpha2.Cache{Path: "/cache"}},
			text: inHTTP("fastcgi_cache_path /cache keys_zone=a:1m max_size=1m;"),
		},
		"temporary files": {spec: spec, text: inHTTP("proxy_temp_path /var/cache/nginx/temp;")},
		"no max_size": {spec: spec, text: inHTTP("proxy_cache_path /var/cache/nginx keys_zone=a:1m;"), warnings: []string{
			"line 1: proxy_cache_path: " + evicted,
		}},
		"max_size below /tmp": {spec: spec, text: inHTTP("proxy_cache_path /tmp/a keys_zone=a:1m;")},
		"beside it": {spec: spec, text: inHTTP("proxy_cache_path /var/cache/nginxes keys_zone=a:1m;"), want: []string{
			"line 1: proxy_cache_path: /var/cache/nginxes " + readOnly + " /tmp/nginxes",
		}},
		"out of it": {spec: spec, text: inHTTP("proxy_cache_path /var/cache/nginx/../a keys_zone=a:1m;"), want: []string{
			"line 1: proxy_cache_path: /var/cache/nginx/../a " + readOnly + " /tmp/a",
		}},
	})
}

// TestMasksAreCheap verifies that masks and paths with long common parts are not expensive.
func TestMasksAreCheap(t *testing.T) {
	var paths []string
	for i := range 16 {
		paths = append(paths, strings.Repeat("a", 120)+fmt.Sprint(i))
	}
	spec := withFiles(paths...)
	line := "include /etc/nginx/files/*" + strings.Repeat("a", 60) + "*" + strings.Repeat("a", 60) + "b;"
	text := inServer(strings.Repeat(line+"\n", MaxBytes/(len(line)+1)-10))
	boundstest.Cheap(t, func() { Check(&spec, text, nil, nil) })
}
