package nginxconf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestRewritesThatExposeVulnerabilities verifies the warnings for configurations with the patterns
// of nginx's vulnerabilities, or with similar patterns, and an image without the fixes.
func TestRewritesThatExposeVulnerabilities(t *testing.T) {
	const first, second = "CVE-2026-42945", "CVE-2026-9256"
	for text, want := range map[string]string{
		// The next five configurations are from the nginx commits with the fixes.
		"rewrite ^(.*) /new?c=1; set $myvar $1; return 200 $myvar;":           first,
		"rewrite ^/((.*))$ http://127.0.0.1:8080/$1$2 redirect;":              second,
		"rewrite ^/((.*))$ http://127.0.0.1:8080/?$1$2;":                      second,
		"rewrite ^/((.*))$ /page?$1$2 last;":                                  second,
		"rewrite ^/((.*))$ /other/$2/$1 permanent;":                           second,
		"rewrite ^/((.*))$ /page?$1$2; set $a b;":                             first + " " + second,
		"rewrite ^/(.*)$ /page?a=$1; set $other value;":                       first,
		"rewrite ^/(.*)$ /page?a=$1; rewrite ^/page /next;":                   first,
		"rewrite ^/(.*)$ /page?a=b; if ($uri = /a$1) { return 404; }":         first,
		"if ($host = a) { rewrite ^/(.*)$ /page?a=b; } set $a $1;":            first,
		"rewrite ^/(.*)$ /page?a=b; if ($host = a) { set $a $1; }":            first,
		"rewrite ^/(?=(.*))(.*)$ /page?$1$2 last;":                            second,
		"rewrite ^/(?<all>a(?<some>.*))$ /page?$1$2 last;":                    second,
		"rewrite ^/(.*)$ /page?a=$1 last; set $other $1;":                     "",
		"rewrite ^/(.*)$ /page?a=$1 break; set $other $1;":                    "",
		"rewrite ^/(.*)$ http://other/page?a=$1; set $other $1;":              "",
		"rewrite ^/(.*)$ /page?; set $other $1;":                              "",
		"rewrite ^/(.*)$ /page; set $other $1;":                               "",
		"rewrite ^/(?<rest>.*)$ /page?a=$rest; set $other $rest;":             "",
		"set $other $1; rewrite ^/(.*)$ /page?a=$1;":                          "",
		"rewrite ^/(.*)$ /page?a=$1; location /inner { set $a $1; }":          "",
		"rewrite ^/(.*)/(.*)$ /page?$1$2 last;":                               "",
		"rewrite ^/((.*))$ /page/$1/$2 last;":                                 "",
		"rewrite ^/((.*))$ /page?$1 last;":                                    "",
		"rewrite ^/((.*))$ /page?$1$2$host last;":                             "",
		"rewrite ^/(?:(.*))/(.*)$ /page?$1$2 last;":                           "",
		`rewrite "^/[(](.*)[^](](.*)\)$" /page?$1$2 last;`:                    "",
		`rewrite "^/\((.*)\((.*)$" /page?$1$2 last;`:                          "",
		"rewrite ^/(.*)/(.*+)$ /page?$1$2 last;":                              second, // only nginx can parse it
		"rewrite ^/((.*))$ /page?$8$9 last;":                                  "",
		"rewrite ^/(?=a)(.*)/(.*)$ /page?$1$2 last;":                          "",
		"location /a { rewrite ^/(.*)$ /p?a=$1; } location /b { set $a $1; }": "",
	} {
		problems, warnings := check(v1alpha2.NginxOperatorSpec{Image: "nginx:1.28.3"}, inServer("location / {", text, "}"))
		var ids []string
		for _, id := range []string{first, second} {
			if strings.Contains(fmt.Sprint(warnings), id) {
				ids = append(ids, id)
			}
		}
		if diff := cmp.Diff(want, strings.Join(ids, " ")); diff != "" || len(problems) > 0 {
			t.Error(text, diff, problems)
		}
	}
}

func TestWarningsOfVulnerabilities(t *testing.T) {
	text := inServer("rewrite ^/(.*)$ /new?c=$1;", "rewrite ^/((.*))$ /page?$1$2 last;")
	const first, second, unless = "line 2: CVE-2026-42945", "line 3: CVE-2026-9256", ", or not"
	for image, want := range map[string][]string{
		"":                                nil,
		"nginx:1.30.2":                    nil,
		"nginx:1.30.4-alpine-otel":        nil,
		"nginx:1.31.1":                    nil,
		"nginx:1.32":                      nil,
		"registry.example/nginx:1.30.2-4": nil,
		"nginx:1.28.3":                    {first, second},
		"nginx:1.29":                      {first, second},
		"nginx:1.30.0":                    {first, second},
		"nginx:1.30.1":                    {second},
		"nginx:1.31.0":                    {second},
		"nginx:1.31":                      {second + unless},
		"nginx:1.30":                      {first + unless, second + unless},
		"nginx:1.30-alpine":               {first + unless, second + unless},
		"nginx:stable":                    {first + unless, second + unless},
		"registry.example/nginx:1.26.3":   {first + unless, second + unless},
		"registry.example/shop:1.30.4":    {first + unless, second + unless},
		"registry.example/nginx@sha256:" + strings.Repeat("a", 64): {first + unless, second + unless},
		"nginx:1.30.1@sha256:" + strings.Repeat("a", 64):           {second},
	} {
		_, warnings := check(v1alpha2.NginxOperatorSpec{Image: image}, text)
		var vulnerable []string
		for _, warning := range warnings {
			id, message, _ := strings.Cut(warning, " (")
			if strings.Contains(message, " (not needed if your distribution has the fix)") {
				id += unless
			}
			vulnerable = append(vulnerable, id)
		}
		if diff := cmp.Diff(want, vulnerable); diff != "" {
			t.Error(image, diff)
		}
	}
}
