package nginxconf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// checked is a configuration with the texts of its files, and with the expected problems and
// warnings. If there are problems, nil warnings are not compared.
type checked struct {
	spec           v1alpha2.NginxOperatorSpec
	text           string
	texts          map[string]string
	want, warnings []string
}

func testChecks(t *testing.T, tests map[string]checked) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.spec.Config = &v1alpha2.Config{Inline: test.text}
			problems, warnings := Check(&test.spec, test.text, test.texts, nil)
			if diff := cmp.Diff(test.want, texts(problems)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.warnings, texts(warnings)); diff != "" && (test.want == nil || test.warnings != nil) {
				t.Error(diff)
			}
		})
	}
}

func texts(problems []Problem) []string {
	var messages []string
	for _, problem := range problems {
		messages = append(messages, problem.String())
	}
	return messages
}

func check(spec v1alpha2.NginxOperatorSpec, text string) (problems, warnings []string) {
	spec.Config = &v1alpha2.Config{Inline: text}
	refused, warned := Check(&spec, text, nil, nil)
	return texts(refused), texts(warned)
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

var refusedConfigurations = map[string]checked{
	"missing semicolon at the end of a block": {text: "server { listen 8080;\nroot /tmp }", want: []string{
		"line 2: root: there is no \";\" at its end; add it before the \"}\"",
	}},
	"missing semicolon in the middle": {text: inServer("root /tmp", "index a;"), want: []string{
		"line 2: root: takes 1 argument, not 3; a semicolon may be missing at the end of the line before or after",
	}},
	"brace too many": {text: "server { listen 8080; }\n}\n", want: []string{
		"line 2: unexpected \"}\": every block is closed already; remove it (the text is inside the http context and needs no brace for it)",
	}},
	"brace too few": {text: "server { listen 8080;\n", want: []string{
		"line 2: the text ends inside of a block; close it with \"}\"",
	}},
	"open quote": {text: inServer(`return 200 "ok;`), want: []string{
		"line 2: return: the text ends before the directive does; end it with \";\" and close every quote",
	}},
	"two semicolons": {text: inServer("root /tmp;;"), want: []string{
		"line 2: unexpected \";\"; remove it",
	}},
	"braces in a regular expression": {text: inServer(`rewrite ^/(\d{4})/ /x;`), want: []string{
		"line 2: rewrite: a regular expression with braces has to be in quotes",
	}},
	"if without parentheses": {text: inServer("if $arg_a { return 204; }"), want: []string{
		"line 2: if: the condition has to be in parentheses, for example `if ($request_method = POST) { ... }`",
	}},
	"long word": {text: inServer("add_header X " + strings.Repeat("x", 4096) + ";"), want: []string{
		"line 2: add_header: nginx accepts words of up to 4090 bytes, and this one has 4096; split it",
	}},

	"depth": {text: strings.Repeat("location / {\n", 33), want: []string{
		"line 33: location: blocks may be nested 32 deep, and this is one more; put what is in it into a block further out",
	}},
	"directives": {text: strings.Repeat("a;", 50_001), want: []string{
		"the configuration has 50001 directives and entries of maps, and may have 50000: " + splitRemedy,
	}},
	"words": {text: "server_name" + strings.Repeat(" a", 200_000) + ";", want: []string{
		"the configuration has 200001 words, and may have 200000: " + splitRemedy,
	}},
	"bytes": {text: strings.Repeat("# comment\n", 110_000), want: []string{
		"the configuration has 1100000 bytes, and a ConfigMap holds up to 1032192: " + splitRemedy,
	}},

	"unknown": {text: inServer("frobnicate on;"), want: []string{
		"line 2: frobnicate: nginx does not know it; correct the name, or set spec.image to an image that has its module compiled in",
	}},
	"module that is not there": {text: inServer(`more_set_headers "X: 1";`), want: []string{
		"line 2: more_set_headers: nginx does not know it; correct the name, or set spec.image to an image that has its module compiled in",
	}},
	"module that is loaded": {text: inHTTP("geoip_country /x;"), want: []string{
		"line 1: geoip_country: nginx does not know it; correct the name, or set spec.image to an image that has its module compiled in",
	}},
	"wrong context": {text: inHTTP("proxy_pass http://127.0.0.1;"), want: []string{
		"line 1: proxy_pass: not allowed here; it is allowed in a location block or in an if of a location or in a limit_except block",
	}},
	"too many arguments": {text: inServer("root /a /b;"), want: []string{
		"line 2: root: takes 1 argument, not 2; a semicolon may be missing at the end of the line before or after",
	}},
	"too few arguments": {text: inServer("add_header X;"), want: []string{
		"line 2: add_header: takes 2 or 3 arguments, not 1; a semicolon may be missing at the end of the line before or after",
	}},
	"no flag": {text: inServer("gzip yes;"), want: []string{
		"line 2: gzip: takes on or off, not \"yes\"",
	}},
	"block missing": {text: inServer("location /;"), want: []string{
		"line 2: location: takes a block; write \"{\", its directives, and \"}\"",
	}},
	"block too many": {text: inServer("root /a { }"), want: []string{
		"line 2: root: takes no block; end it with \";\"",
	}},

	"daemon": {text: inHTTP("daemon on;"), want: []string{
		"line 1: daemon: cannot be set here: nginx runs in the foreground, or its container would end; remove it",
	}},
	"worker_connections": {text: inHTTP("worker_connections 4096;"), want: []string{
		"line 1: worker_connections: cannot be set here: the operator owns the events context; remove it and set spec.nginx.workerConnections",
	}},
	"load_module": {text: inHTTP("load_module modules/ngx_http_js_module.so;"), want: []string{
		"line 1: load_module: cannot be set here: the operator loads no modules; remove it, " +
			"and set spec.image to an image that has the module compiled in",
	}},
	"OpenTelemetry": {text: inHTTP(
		"load_module modules/ngx_otel_module.so;", "otel_exporter { endpoint a:4317; }", "otel_trace on;",
	), want: []string{
		"line 1: load_module: cannot be set here: OpenTelemetry's module cannot be compiled into nginx, only loaded, and the operator " +
			"loads no modules; remove it",
		"line 2: otel_exporter: OpenTelemetry's module cannot be compiled into nginx, only loaded, and the operator loads no modules; remove it",
		"line 3: otel_trace: OpenTelemetry's module cannot be compiled into nginx, only loaded, and the operator loads no modules; remove it",
	}},
	"events": {text: inHTTP("events { worker_connections 1024; }"), want: []string{
		"line 1: events: cannot be set here: the operator owns the events context; remove the block",
	}},
	"http": {text: "http {\nserver { listen 8080; }\n}\n", want: []string{
		"line 1: http: cannot be set here: the text is inside the http context already; " +
			"keep what is in the block and remove `http {` and its `}`",
	}},
	"main context": {text: inHTTP("worker_rlimit_nofile 1024;"), want: []string{
		"line 1: worker_rlimit_nofile: cannot be set here: it belongs outside of the http context, which the operator owns; remove it",
	}},

	"log file": {text: inServer("access_log /var/log/nginx/shop.log;"), want: []string{
		"line 2: access_log: /var/log/nginx/shop.log is on a read-only file system; write /dev/stdout",
	}},
	"error log": {text: inServer("error_log logs/error.log;"), want: []string{
		"line 2: error_log: logs/error.log is on a read-only file system; write /dev/stderr",
	}},
	"cache": {text: inHTTP("proxy_cache_path /var/cache/nginx keys_zone=a:1m;"), want: []string{
		"line 1: proxy_cache_path: /var/cache/nginx is on a read-only file system; declare a volume there in spec.cache, " +
			"or write below /tmp, for example /tmp/nginx",
	}},
	"temporary path": {text: inHTTP("client_body_temp_path /var/lib/nginx/body;"), want: []string{
		"line 1: client_body_temp_path: /var/lib/nginx/body is on a read-only file system; write below /tmp, for example /tmp/body",
	}},
	"path out of /tmp": {text: inHTTP("proxy_temp_path /tmp/../var;"), want: []string{
		"line 1: proxy_temp_path: /tmp/../var is on a read-only file system; write below /tmp, for example /tmp/var",
	}},
	"store": {text: inServer("location /a { proxy_store /data; proxy_pass http://127.0.0.1; }"), want: []string{
		"line 2: proxy_store: /data is on a read-only file system; write below /tmp",
	}},

	"relative include": {text: inServer("location / { include fastcgi_params; }"), want: []string{
		"line 2: include: nginx looks for fastcgi_params in /etc/nginx-operator, where it does not exist; " +
			"write include /etc/nginx/fastcgi_params",
	}},
	"types of all servers": {text: "include mime.types;\n" + inServer("include conf/mime.types;"), want: []string{
		"line 1: include: nginx looks for mime.types in /etc/nginx-operator, where it does not exist; remove it, because the operator " +
			"includes /etc/nginx/mime.types already",
		"line 3: include: nginx looks for conf/mime.types in /etc/nginx-operator, where it does not exist; " +
			"write include /etc/nginx/mime.types",
	}},
	"block in a map": {text: inHTTP("map $uri $x {", "/a b;", "/c { d e; }", "}"), want: []string{
		"line 3: /c: unexpected \"{\" in a map block; put a regular expression or a text with braces in quotes",
	}},
	"missing semicolon in a map": {text: inHTTP("map $uri $x {", "/a 1", "/b 2;", "}"), want: []string{
		"line 2: /a: an entry of a map block has two words, not 4; a semicolon may be missing at the end of a line",
	}},
	"relative include of ours": {text: inServer("include snippets/tls.conf;"), want: []string{
		"line 2: include: nginx looks for snippets/tls.conf in /etc/nginx-operator, where it does not exist; put its text here",
	}},
	"include of itself": {text: inHTTP("include /etc/nginx-operator/servers.conf;"), want: []string{
		"line 1: include: /etc/nginx-operator/servers.conf does not exist when nginx starts; put its text here",
	}},

	"port nobody listens on": {text: inServer(), spec: twoPorts(), want: []string{
		"listen: spec.ports[1].port 8081: no server listens on it; add `listen 8081;` to a server, " +
			"or declare the ports that the servers listen on",
	}},
	"target port nobody listens on": {text: "server { listen 80; }", spec: targets(), want: []string{
		"listen: spec.ports[0].targetPort 8080: no server listens on it; add `listen 8080;` to a server, " +
			"or declare the ports that the servers listen on",
		"listen: spec.tls[0].targetPort 8443: no server listens on it; add `listen 8443 ssl;` to a server, " +
			"or remove the port, so that the certificate is only mounted",
		"line 1: listen: nginx cannot listen on port 80 without privileges; declare it in spec.ports, or use a port from 1024 on",
	}},
	"target ports": {
		text: "server { listen 8080;\nlisten 8443 ssl;\n" +
			"ssl_certificate /etc/nginx/tls/shop/tls.crt; ssl_certificate_key /etc/nginx/tls/shop/tls.key; }",
		spec: targets(), warnings: []string{
			"the configuration does not reference /etc/nginx/tls/blog, so the certificate is not served; " +
				"set ssl_certificate and ssl_certificate_key",
		},
	},
	"no listen": {text: "server { server_name a; }", want: []string{
		"listen: port 8080 (the default of spec.ports): no server listens on it; add `listen 8080;` to a server, " +
			"or declare the ports that the servers listen on",
	}},
	"only on the loopback address": {text: "server { listen 127.0.0.1:8080; }", want: []string{
		"listen: port 8080 (the default of spec.ports): no server listens on it; add `listen 8080;` to a server, " +
			"or declare the ports that the servers listen on",
	}},
	"port of the probes": {text: "server {\nlisten 8080;\nlisten 18080;\n}", want: []string{
		"line 3: listen: port 18080 is used by the operator's own server for the kubelet's probes; choose another port",
	}},
	"ports of monitoring": {
		text: "server {\nlisten 8080;\nlisten 127.0.0.1:18081;\nlisten 9113;\n}",
		spec: v1alpha2.NginxOperatorSpec{Monitoring: &v1alpha2.Monitoring{}}, want: []string{
			"line 3: listen: port 18081 is used by the operator's own server for the metrics of nginx (spec.monitoring); choose another port",
			"line 4: listen: port 9113 is used by the exporter (spec.monitoring); choose another port",
		},
	},
	"ports of monitoring that is off": {
		text: "server {\nlisten 8080;\nlisten 127.0.0.1:18081;\n}",
		spec: v1alpha2.NginxOperatorSpec{Monitoring: &v1alpha2.Monitoring{Enabled: ptr.To(false)}},
	},
	"port without privileges": {text: "server {\nlisten 8080;\nlisten 80;\n}", want: []string{
		"line 3: listen: nginx cannot listen on port 80 without privileges; declare it in spec.ports, or use a port from 1024 on",
	}},
	"TLS on a plain port": {text: "server { listen 8080 ssl;\n" +
		"ssl_certificate /etc/nginx/tls/shop/tls.crt; ssl_certificate_key /etc/nginx/tls/shop/tls.key; }", spec: mounted(), want: []string{
		"line 1: listen: port 8080 (the default of spec.ports) is for plain HTTP; set its appProtocol to https, " +
			"declare the port in spec.tls instead, or remove ssl",
	}},
	"plain on a TLS port": {text: "server { listen 8080;\nlisten 8443; }", spec: tlsSpec("shop"), want: []string{
		"line 2: listen: spec.tls[0].port 8443 is for TLS; write `listen 8443 ssl;`",
	}},
	"TLS on a port that says so": {text: "server { listen 9443 ssl;\nssl_certificate /etc/nginx/tls/shop/tls.crt;\n" +
		"ssl_certificate_key /etc/nginx/tls/shop/tls.key; }", spec: overHTTPS(9443)},
	"plain on a port for TLS": {text: "server { listen 9443; }", spec: overHTTPS(9443), want: []string{
		"line 1: listen: spec.ports[0].port 9443 is for TLS; write `listen 9443 ssl;`",
	}},
	"port for TLS nobody listens on": {text: "server { listen 127.0.0.1:9090; }", spec: overHTTPS(9443), want: []string{
		"listen: spec.ports[0].port 9443: no server listens on it; add `listen 9443 ssl;` to a server, " +
			"or declare the ports that the servers listen on",
	}},
	"certificate that is not mounted": {text: inServer(
		"ssl_certificate /etc/nginx/tls/other/tls.crt;", "ssl_certificate_key /etc/nginx/tls/other/tls.key;",
	), spec: mounted(), want: []string{
		"line 2: ssl_certificate: spec.tls has no Secret other; add `- secretName: other` to spec.tls",
		"line 3: ssl_certificate_key: spec.tls has no Secret other; add `- secretName: other` to spec.tls",
	}},
	"certificate with a relative path": {text: inServer(
		"ssl_certificate certs/tls.crt;", "ssl_certificate_key /etc/nginx/tls/shop/tls.key;",
	), spec: mounted(), want: []string{
		"line 2: ssl_certificate: nginx looks for certs/tls.crt in /etc/nginx-operator, where it does not exist; " +
			"write /etc/nginx/tls/NAME/tls.crt with a NAME of spec.tls",
	}},
}

func TestRefused(t *testing.T) { testChecks(t, refusedConfigurations) }

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
