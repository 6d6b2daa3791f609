package nginxconf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// admitted lists configurations that nginx accepts, or that only nginx can check.
var admitted = map[string]checked{
	"variable in a longer word": {text: inServer(`rewrite ^/u/(\w+)$ /users/$1_profile last;`)},
	"cache in shared memory":    {text: inHTTP("proxy_cache_path /dev/shm/c keys_zone=c:1m;")},
	"log of a file descriptor":  {text: inServer("access_log /dev/fd/1;", "error_log /proc/self/fd/2;")},
	"log with a variable":       {text: inServer("access_log $target;", "set $target /dev/stdout;")},
	"volatile geo":              {text: inHTTP("geo $x {", "volatile;", "default 0;", "192.0.2.0/24 1;", "}")},
	"ranges":                    {text: inHTTP("geo $x {", "ranges;", "192.0.2.0-192.0.2.9 1;", "}")},
	"undocumented":              {text: inServer("location / { post_action /done; }", "location /done { }")},
	"regular expressions": {
		text: inServer(`location ~ "^/(?<year>\d{4})/" { return 200 $year; }`, `location ~* \.(png|jpg)$ { }`),
	},
	"escapes":                    {text: inServer(`return 200 "a \"b\" \\ {};#c\n";`)},
	"quotes within a word":       {text: inServer(`set $a b"c;`, `add_header X a'b;`)},
	"variable in braces":         {text: inServer(`return 302 https://${host}/x;`, `set $b a${uri}b;`)},
	"parenthesis behind a quote": {text: inServer(`if ($uri = "x") { return 204; }`)},
	"hash within a word":         {text: inServer("return 302 /a#b; # c; {")},
	"conditions":                 {text: inServer("if (!-f $request_filename) { break; }", "if ( $arg_a ) { return 204; }")},
	"headers of a map": {
		text: inHTTP("map $http_upgrade $upgrade {", "default upgrade;", `"" close;`, "~^a(b) $1;", `"if" x;`, "}"),
	},
	"more words than nginx reads":     {text: inHTTP("split_clients $uri $x {", "5% a b;", "* c;", "}")},
	"types":                           {text: inHTTP("types {", "text/html html htm;", "}")},
	"names of variables of modules":   {text: inServer("return 200 $cookie_a$arg_b$http_c$sent_http_d;")},
	"named locations":                 {text: inServer("try_files $uri @app;", "location @app { proxy_pass http://127.0.0.1:3000; }")},
	"Windows line ends and tabs":      {text: "server {\r\n\tlisten 8080;\r\n}\r\n"},
	"empty upstream that nginx takes": {text: inHTTP("upstream u { zone u 64k; server 127.0.0.1:1; }")},
	"state of an upstream": {
		spec: v1alpha2.NginxOperatorSpec{Image: "private-registry.nginx.com/nginx-plus/base:r35"},
		text: inHTTP("upstream u { zone u 64k; state /tmp/u.state; }"),
	},
	"directive of another module": {
		spec: v1alpha2.NginxOperatorSpec{Image: "registry.example.com/nginx:1.28.0-brotli"}, text: inServer("brotli on;"),
	},
	"OpenTelemetry in an own image": {
		spec: v1alpha2.NginxOperatorSpec{Image: "registry.example.com/nginx:1.28.0-otel"}, text: inServer("otel_trace on;"),
	},
	"types of all servers": {
		text: "include /etc/nginx/mime.types;\n" + inServer("include /etc/nginx/mime.types;"),
	},
	"image with unknown modules": {
		spec: v1alpha2.NginxOperatorSpec{Image: "quay.io/me/my-nginx:1"},
		text: inServer(
			`more_set_headers "X-Served-By: me";`,
			"location / {", "content_by_lua_block {", `  if x == "{" then ngx.say("}") end`, "}", "}",
			"frobnicate on;", "include /etc/nginx/snippets/ours.conf;", "limit_req zone=theirs;", "set $x $theirs;",
			"satisfy most;", "http3 off;", "root /a;", "root /b;",
		),
	},
	"directive of another version": {spec: v1alpha2.NginxOperatorSpec{Image: "nginx:1.24"}, text: inServer("http2 on;")},

	// Large realistic configurations are within the bounds.
	"large map": {text: inHTTP("map $uri $new {", strings.Repeat("  /old/path/1000 /new/path/1000;\n", 10_000), "}")},
	"large geo": {text: inHTTP("geo $net {", strings.Repeat("192.0.2.1/32 1;\n", 40_000), "}")},
	"many servers": {text: strings.Repeat("server {\n  listen 8080;\n  server_name host100.example.com;\n"+
		strings.Repeat("  location /1/ {\n    proxy_pass http://127.0.0.1:3000;\n    proxy_set_header Host $host;\n"+
			"    proxy_read_timeout 5s;\n  }\n", 10)+"}\n", 500)},

	// nginx rejects the following configurations, and reports the error itself.
	"value":            {text: inServer("client_max_body_size 10MB;")},
	"repetition":       {text: inServer("root /a;", "root /b;")},
	"unknown variable": {text: inServer("return 200 $nothing;")},
	"unknown zone":     {text: inServer("limit_req zone=a;")},
	"parameter": {
		text: inServer("listen 8081 spdy;"),
	},
	"no certificate": {text: inServer("listen 127.0.0.1:8443 ssl;")},
	"socket in the file system": {
		text: inServer("listen unix:/tmp/x.sock;"),
	},
	"files of the image": {
		text: "include /etc/nginx/conf.d/*.conf;",
	},
}

func TestAdmitted(t *testing.T) {
	for name, test := range admitted {
		if problems, _ := test.check(); len(problems) > 0 {
			t.Errorf("%s: %q", name, problems)
		}
	}
}

func describe(d *directive) string {
	out := fmt.Sprintf("%d %s %q", d.line, d.name, d.args)
	for _, inner := range d.block {
		out += " {" + describe(inner) + "}"
	}
	return out
}

// TestWords verifies that the parser splits words like nginx.
func TestWords(t *testing.T) {
	text := "a 'b c' \"d\\\"e\" f\\;g ${h;i} j\\tk '' ;\n# no }\nl{m\\n;}\nx_by_lua_block { s = \"}\" --[[ } ]] -- }\n t = [=[}]=] }\nz;"
	tree, problem := parse(text)
	if problem != nil {
		t.Fatal(problem)
	}
	var got []string
	for _, d := range tree {
		got = append(got, describe(d))
	}
	if diff := cmp.Diff([]string{
		`1 a ["b c" "d\"e" "f\\;g" "${h"]`, `1 i} ["j\tk" ""]`, `3 l [] {3 m` + "\n" + ` []}`,
		`4 x_by_lua_block [" s = \"}\" --[[ } ]] -- }\n t = [=[}]=] "]`,
		`6 z []`,
	}, got); diff != "" {
		t.Error(diff)
	}
}
