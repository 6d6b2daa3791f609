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

// withMask returns a spec with a mask whose directory is b, and with its keys.
func withMask(keys ...string) v1alpha2.NginxOperatorSpec {
	spec := withFiles("b")
	spec.Files[0].ConfigMapRef.Key = "*.inc"
	for _, key := range keys {
		spec.Files = append(spec.Files, v1alpha2.File{Path: key})
	}
	return spec
}

// withImage returns the spec with an image whose content is unknown.
func withImage(spec v1alpha2.NginxOperatorSpec) v1alpha2.NginxOperatorSpec {
	spec.Image = "registry.example.com/nginx:1"
	return spec
}

// fileCases are configurations with files of spec.files.
func fileCases() map[string]checked {
	return map[string]checked{
		"declared": {spec: withFiles("a.conf", "snippets/b.conf", "htpasswd", "dhparam.pem"), text: inServer(
			"include /etc/nginx/files/a.conf;", "include /etc/nginx/files/snippets/*.conf;",
			"auth_basic_user_file /etc/nginx/files/htpasswd;", "ssl_dhparam /etc/nginx/files/dhparam.pem;",
		)},
		"not declared": {spec: withFiles("a.conf"), text: inServer(
			"include /etc/nginx/files/b.conf;", "auth_basic_user_file /etc/nginx/files/htpasswd;",
			"ssl_dhparam /etc/nginx/files/../files/dhparam.pem;",
		)},
		"nothing declared": {text: inServer("include /etc/nginx/files/b.conf;")},
		"nothing declared, read for each request": {
			text: inServer("auth_basic_user_file /etc/nginx/files/htpasswd;"),
		},
		"in a map":                         {spec: withFiles("a"), text: inHTTP("map $uri $x { include /etc/nginx/files/b; }")},
		"own image with files of its own":  {spec: withImage(withFiles()), text: inServer("include /etc/nginx/files/b.conf;")},
		"own image whose files are hidden": {spec: withImage(withFiles("a")), text: inServer("include /etc/nginx/files/b.conf;")},
		"mask that stands for nothing": {
			spec: withFiles("a.conf"), text: inServer("include /etc/nginx/files/*.inc;"),
		},
		"mask that is none": {
			spec: withFiles("a.conf"), text: inServer("include /etc/nginx/files/[a;"),
		},
		"keys of a mask, not read yet": {spec: withMask(), text: inServer(
			"include /etc/nginx/files/b/*.inc;", "include /etc/nginx/files/b/x.inc;", "include /etc/nginx/files/*/x.inc;",
		)},
		"names that a mask does not match, not read yet": {spec: withMask(), text: inServer("include /etc/nginx/files/b/x.conf;")},
		"keys of a mask": {
			spec: withMask("b/x.inc"), texts: map[string]string{"b/x.inc": ""}, text: inServer(
				"include /etc/nginx/files/b/*.inc;", "include /etc/nginx/files/b/x.inc;", "include /etc/nginx/files/b/y.inc;",
			),
		},
		"name in a variable":             {spec: withFiles("a"), text: inServer("auth_basic_user_file /etc/nginx/files/$host;")},
		"port that a file may listen on": {spec: withFiles("a.conf"), text: "include /etc/nginx/files/a.conf;"},
	}
}

// cacheCases are configurations with and without a volume of spec.cache.
func cacheCases() map[string]checked {
	spec := v1alpha2.NginxOperatorSpec{Cache: &v1alpha2.Cache{}}
	return map[string]checked{
		"at the default path": {spec: spec, text: inHTTP("proxy_cache_path /var/cache/nginx keys_zone=a:1m max_size=1m;")},
		"below it":            {spec: spec, text: inHTTP("proxy_cache_path /var/cache/nginx/a keys_zone=a:1m max_size=1m;")},
		"at another path": {
			spec: v1alpha2.NginxOperatorSpec{Cache: &v1alpha2.Cache{Path: "/cache"}},
			text: inHTTP("fastcgi_cache_path /cache keys_zone=a:1m max_size=1m;"),
		},
		"temporary files":     {spec: spec, text: inHTTP("proxy_temp_path /var/cache/nginx/temp;")},
		"no max_size":         {spec: spec, text: inHTTP("proxy_cache_path /var/cache/nginx keys_zone=a:1m;")},
		"max_size below /tmp": {spec: spec, text: inHTTP("proxy_cache_path /tmp/a keys_zone=a:1m;")},
		"beside it":           {spec: spec, text: inHTTP("proxy_cache_path /var/cache/nginxes keys_zone=a:1m;")},
		"out of it":           {spec: spec, text: inHTTP("proxy_cache_path /var/cache/nginx/../a keys_zone=a:1m;")},
	}
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
	boundstest.Cheap(t, func() { Check(&spec, Whole(text), nil, nil) })
}
