package nginxconf

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// inServer returns a configuration with a server that listens on the default port. The directives
// start at line 2.
func inServer(lines ...string) string {
	return "server { listen 8080;\n" + strings.Join(lines, "\n") + "\n}\n"
}

// inHTTP returns a configuration with directives in the http context, followed by a server that
// listens on the default port.
func inHTTP(lines ...string) string {
	return strings.Join(lines, "\n") + "\nserver { listen 8080; }\n"
}

// checked is a configuration with the texts of its files. Its problems and warnings are in the golden
// files, see TestMessages.
type checked struct {
	spec  v1alpha2.NginxOperatorSpec
	text  string
	texts map[string]string
	names map[string][]string
}

func (c checked) check() (problems, warnings []string) {
	c.spec.Config = &v1alpha2.Config{Inline: c.text, Values: ptr.Deref(c.spec.Config, v1alpha2.Config{}).Values}
	servers, refused, warned := Whole(c.text).Expand(&c.spec, Literals(&c.spec))
	if len(refused) == 0 {
		problems, warnings := Check(&c.spec, servers, c.texts, maps.Clone(c.names))
		refused, warned = problems, append(warned, warnings...)
	}
	outerRefused, outerWarned := CheckOutside(&c.spec, c.texts)
	return append(texts(refused), texts(outerRefused)...), append(texts(warned), texts(outerWarned)...)
}

func texts(problems []Problem) []string {
	var messages []string
	for _, problem := range problems {
		message := problem.String()
		if strings.HasPrefix(problem.Field, "spec.nginx.") {
			message = problem.Field + ": " + message
		}
		messages = append(messages, message)
	}
	return messages
}

func check(spec v1alpha2.NginxOperatorSpec, text string) (problems, warnings []string) {
	return checked{spec: spec, text: text}.check()
}

func tlsSpec(names ...string) v1alpha2.NginxOperatorSpec {
	spec := v1alpha2.NginxOperatorSpec{}
	for i, name := range names {
		tls := v1alpha2.TLS{SecretName: name}
		if i == 0 {
			tls.Port = ptr.To[int32](8443)
		}
		spec.TLS = append(spec.TLS, tls)
	}
	return spec
}

// overHTTPS returns a spec with one port, which is for TLS.
func overHTTPS(port int32) v1alpha2.NginxOperatorSpec {
	return v1alpha2.NginxOperatorSpec{
		Ports: []v1alpha2.Port{{Name: "https", Port: port, AppProtocol: "https"}}, TLS: []v1alpha2.TLS{{SecretName: "shop"}},
	}
}

// mounted returns a spec with a certificate without a port.
func mounted() v1alpha2.NginxOperatorSpec {
	return v1alpha2.NginxOperatorSpec{TLS: []v1alpha2.TLS{{SecretName: "shop"}}}
}

func twoPorts() v1alpha2.NginxOperatorSpec {
	return v1alpha2.NginxOperatorSpec{Ports: []v1alpha2.Port{{Name: "http", Port: 8080}, {Name: "admin", Port: 8081}}}
}

func overPort(port int32) v1alpha2.NginxOperatorSpec {
	return v1alpha2.NginxOperatorSpec{Ports: []v1alpha2.Port{{Name: "http", Port: port}}}
}

var refusedConfigurations = map[string]checked{
	"missing semicolon at the end of a block": {text: "server { listen 8080;\nroot /tmp }"},
	"brace too many":                  {text: "server { listen 8080; }\n}\n"},
	"brace too few":                   {text: "server { listen 8080;\n"},
	"open quote":                      {text: inServer(`return 200 "ok;`)},
	"two semicolons":                  {text: inServer("root /tmp;;")},
	"braces in a regular expression":  {text: inServer(`rewrite ^/(\d{4})/ /x;`)},
	"open quote of a long text":       {text: inServer(`return 200 "` + strings.Repeat("x", 4096) + ";")},
	"text after a quote":              {text: inServer(`return 200 "ok"x;`)},
	"open Lua block":                  {text: inServer("content_by_lua_block {")},
	"if without a condition":          {text: inServer("if { return 204; }", "if () { }")},
	"if with an empty condition":      {text: inServer("if () { return 204; }")},
	"if without the last parenthesis": {text: inServer("if ($arg_a = b { return 204; }")},
	"if without parentheses":          {text: inServer("if $arg_a { return 204; }")},
	"long word":                       {text: inServer("add_header X " + strings.Repeat("x", 4096) + ";")},

	"depth":      {text: strings.Repeat("location / { ", 33)},
	"directives": {text: strings.Repeat("a;", 50_001)},
	"words":      {text: "server_name" + strings.Repeat(" a", 200_000) + ";"},
	"bytes":      {text: strings.Repeat("# comment\n", 110_000)},

	"unknown":                  {text: inServer("frobnicate on;")},
	"module that is not there": {text: inServer(`more_set_headers "X: 1";`)},
	"module that is loaded":    {text: inHTTP("geoip_country /x;")},
	"wrong context":            {text: inHTTP("proxy_pass http://127.0.0.1;")},
	"too many arguments":       {text: inServer("root /a /b;")},
	"too few arguments":        {text: inServer("add_header X;")},
	"few of one or more":       {text: inServer("early_hints;")},
	"few of two or more":       {text: inHTTP("log_format a;")},
	"switch with two values":   {text: inServer("gzip on off;")},
	"directive of an upstream": {text: inServer("sticky cookie a;")},
	"many problems":            {text: inServer(strings.Repeat("proxy_pas a; ", 30))},
	"no flag":                  {text: inServer("gzip yes;")},
	"block missing":            {text: inServer("location /;")},
	"block too many":           {text: inServer("root /a { }")},

	"whole nginx.conf":   {text: wholeFile},
	"daemon":             {text: inHTTP("daemon on;")},
	"worker_connections": {text: inHTTP("worker_connections 4096;")},
	"load_module":        {text: inHTTP("load_module modules/ngx_http_js_module.so;")},
	"OpenTelemetry": {text: inHTTP(
		"load_module modules/ngx_otel_module.so;", "otel_exporter { endpoint a:4317; }", "otel_trace on;",
	)},
	"events":       {text: inHTTP("events { worker_connections 1024; }")},
	"http":         {text: "http {\nserver { listen 8080; }\n}\n"},
	"main context": {text: inHTTP("worker_rlimit_nofile 1024;")},

	"log file":         {text: inServer("access_log /var/log/nginx/shop.log;")},
	"error log":        {text: inServer("error_log logs/error.log;")},
	"cache":            {text: inHTTP("proxy_cache_path /var/cache/nginx keys_zone=a:1m;")},
	"temporary path":   {text: inHTTP("client_body_temp_path /var/lib/nginx/body;")},
	"path out of /tmp": {text: inHTTP("proxy_temp_path /tmp/../var;")},
	"store":            {text: inServer("location /a { proxy_store /data; proxy_pass http://127.0.0.1; }")},

	"state of an upstream on the root file system": {
		spec: v1alpha2.NginxOperatorSpec{Image: "private-registry.nginx.com/nginx-plus/base:r35"},
		text: inHTTP("upstream u { zone u 64k; state /var/lib/u.state; }"),
	},
	"relative include":           {text: inServer("location / { include fastcgi_params; }")},
	"types of all servers":       {text: "include mime.types;\n" + inServer("include conf/mime.types;")},
	"block in a map":             {text: inHTTP("map $uri $x {", "/a b;", "/c { d e; }", "}")},
	"missing semicolon in a map": {text: inHTTP("map $uri $x {", "/a 1", "/b 2;", "}")},
	"relative include of ours":   {text: inServer("include snippets/tls.conf;")},
	"include of itself":          {text: inHTTP("include /etc/nginx-operator/servers.conf;")},

	"listen 80":                     {text: "server { listen 80 default_server; listen [::]:80; }\nserver { listen 80; server_name a; }"},
	"listen 80 and 443 ssl":         {text: "server { listen 80; }\nserver { listen 443 ssl; }"},
	"listen 80 with another port":   {text: "server { listen 80; }", spec: overPort(8081)},
	"listen with another number":    {text: "server { listen 8080; listen 9090; }", spec: twoPorts()},
	"only the port of the probes":   {text: "server { listen 18080; }"},
	"two servers without a listen":  {text: "server { server_name a; }\nserver { server_name b; }"},
	"port nobody listens on":        {text: inServer(), spec: twoPorts()},
	"target port nobody listens on": {text: "server { listen 80; }", spec: targets()},
	"target ports": {
		text: "server { listen 8080;\nlisten 8443 ssl;\n" +
			"ssl_certificate /etc/nginx/tls/shop/tls.crt; ssl_certificate_key /etc/nginx/tls/shop/tls.key; }",
		spec: targets(),
	},
	"no listen":                    {text: "server { server_name a; }"},
	"only on the loopback address": {text: "server { listen 127.0.0.1:8080; }"},
	"port of the probes":           {text: "server {\nlisten 8080;\nlisten 18080;\n}"},
	"ports of monitoring": {
		text: "server {\nlisten 8080;\nlisten 127.0.0.1:18081;\nlisten 9113;\n}",
		spec: v1alpha2.NginxOperatorSpec{Monitoring: &v1alpha2.Monitoring{}},
	},
	"ports of monitoring that is off": {
		text: "server {\nlisten 8080;\nlisten 127.0.0.1:18081;\n}",
		spec: v1alpha2.NginxOperatorSpec{Monitoring: &v1alpha2.Monitoring{Enabled: ptr.To(false)}},
	},
	"port without privileges": {text: "server {\nlisten 8080;\nlisten 80;\n}"},
	"TLS on a plain port": {text: "server { listen 8080 ssl;\n" +
		"ssl_certificate /etc/nginx/tls/shop/tls.crt; ssl_certificate_key /etc/nginx/tls/shop/tls.key; }", spec: mounted()},
	"plain on a TLS port": {text: "server { listen 8080;\nlisten 8443; }", spec: tlsSpec("shop")},
	"TLS on a port that says so": {text: "server { listen 9443 ssl;\nssl_certificate /etc/nginx/tls/shop/tls.crt;\n" +
		"ssl_certificate_key /etc/nginx/tls/shop/tls.key; }", spec: overHTTPS(9443)},
	"plain on a port for TLS":        {text: "server { listen 9443; }", spec: overHTTPS(9443)},
	"port for TLS nobody listens on": {text: "server { listen 127.0.0.1:9090; }", spec: overHTTPS(9443)},
	"certificate that is not mounted": {text: inServer(
		"ssl_certificate /etc/nginx/tls/other/tls.crt;", "ssl_certificate_key /etc/nginx/tls/other/tls.key;",
	), spec: mounted()},
	"certificate with a relative path": {text: inServer(
		"ssl_certificate certs/tls.crt;", "ssl_certificate_key /etc/nginx/tls/shop/tls.key;",
	), spec: mounted()},
}

// wholeFile is the nginx.conf of many images.
const wholeFile = `user  nginx;
worker_processes  auto;
worker_rlimit_nofile 8192;
worker_shutdown_timeout 10s;
error_log  /var/log/nginx/error.log warn;
pid        /var/run/nginx.pid;
lock_file  /var/run/nginx.lock;
env        TZ;
thread_pool default threads=32;
include /etc/nginx/modules-enabled/*.conf;
events {
  worker_connections  4096;
}
http {
  include       mime.types;
  access_log  /var/log/nginx/access.log  main;
  proxy_cache_path /var/cache/nginx/pages keys_zone=pages:10m;
  server {
    listen       8080;
  }
}
stream { }
mail { }
master_process on;
daemon off;
`

func TestManyProblems(t *testing.T) {
	problems, _ := check(v1alpha2.NginxOperatorSpec{}, inServer(strings.Repeat("proxy_pas a;\n", 1000)))
	if last := problems[len(problems)-1]; len(problems) != shown+1 || last != "and 980 more" {
		t.Errorf("%d problems, the last %q", len(problems), last)
	}
}

// targets returns a spec whose target ports differ from the ports of the Service. Two certificates
// share a port.
func targets() v1alpha2.NginxOperatorSpec {
	return v1alpha2.NginxOperatorSpec{
		Ports: []v1alpha2.Port{{Name: "http", Port: 80, TargetPort: ptr.To[int32](8080)}},
		TLS: []v1alpha2.TLS{
			{SecretName: "shop", Port: ptr.To[int32](443), TargetPort: ptr.To[int32](8443)},
			{SecretName: "blog", Port: ptr.To[int32](443), TargetPort: ptr.To[int32](8443)},
		},
	}
}
