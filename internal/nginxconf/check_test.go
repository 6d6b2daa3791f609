package nginxconf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// inServer puts directives into a server that listens on the default port, each in a line from the second on.
func inServer(lines ...string) string {
	return "server { listen 8080;\n" + strings.Join(lines, "\n") + "\n}\n"
}

// inHTTP puts directives outside of all blocks, beside such a server.
func inHTTP(lines ...string) string {
	return strings.Join(lines, "\n") + "\nserver { listen 8080; }\n"
}

// refused is a configuration and what a user is told of it.
type refused struct {
	text string
	spec v1alpha2.NginxOperatorSpec
	want []string
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

// mounted is a spec with a certificate that has no port.
func mounted() v1alpha2.NginxOperatorSpec {
	return v1alpha2.NginxOperatorSpec{TLS: []v1alpha2.TLS{{SecretName: "shop"}}, Config: &v1alpha2.Config{}}
}

func twoPorts() v1alpha2.NginxOperatorSpec {
	return v1alpha2.NginxOperatorSpec{Ports: []v1alpha2.Port{{Name: "http", Port: 8080}, {Name: "admin", Port: 8081}}}
}

var refusedConfigurations = map[string]refused{
	"missing semicolon at the end of a block": {text: "server { listen 8080;\nroot /tmp }", want: []string{
		"line 2: root: there is no \";\" at its end; add it before the \"}\"",
	}},
	"missing semicolon in the middle": {text: inServer("root /tmp", "index a;"), want: []string{
		"line 2: root: takes 1 argument, not 3; a semicolon may be missing at the end of the line before or after",
	}},
	"brace too many": {text: "server { listen 8080; }\n}\n", want: []string{
		"line 2: unexpected \"}\": every block is closed already; remove it (the text needs no brace for the http context)",
	}},
	"brace too few": {text: "server { listen 8080;\n", want: []string{
		"line 1: the text ends inside of a block; close it with \"}\"",
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
	"open parenthesis": {text: inServer(`location ~ ^/(a|b { }`, ""), want: []string{
		"line 2: location: the regular expression ^/(a|b: missing closing ); correct it",
	}},
	"unbalanced expression": {text: inServer(`rewrite "^/((a)" /x;`), want: []string{
		"line 2: rewrite: the regular expression ^/((a): missing closing ); correct it",
	}},
	"if without parentheses": {text: inServer("if $arg_a { return 204; }"), want: []string{
		"line 2: if: the condition has to be in parentheses, for example `if ($request_method = POST) { ... }`",
	}},
	"map entry without a value": {text: inHTTP("map $uri $x {", "  default;", "}"), want: []string{
		"line 2: map: an entry of this block is a key and a value, as in `key value;`",
	}},
	"long word": {text: inServer("add_header X " + strings.Repeat("x", 4096) + ";"), want: []string{
		"line 2: add_header: nginx reads no word of more than 4090 bytes, and this one has 4096; split it",
	}},

	"unknown with a near one": {text: inServer("proxy_pas http://127.0.0.1;"), want: []string{
		"line 2: proxy_pas: nginx does not know it; did you mean proxy_pass?",
	}},
	"unknown": {text: inServer("frobnicate on;"), want: []string{
		"line 2: frobnicate: nginx does not know it; correct the name, or set spec.image to an image that has its module compiled in",
	}},
	"module that is not there": {text: inServer(`more_set_headers "X: 1";`), want: []string{
		"line 2: more_set_headers: nginx does not know it without the module headers-more, and the operator loads no modules; set spec.image to an image that has it compiled in",
	}},
	"module that is loaded": {text: inHTTP("geoip_country /x;"), want: []string{
		"line 1: geoip_country: nginx does not know it without the module geoip, and the operator loads no modules; set spec.image to an image that has it compiled in",
	}},
	"too new": {text: inServer("early_hints $http2;"), want: []string{
		"line 2: early_hints: nginx 1.28 does not know it; remove it, or set spec.image to a version that does",
	}},
	"too new for the tag": {text: inServer("http2 on;"), spec: v1alpha2.NginxOperatorSpec{Image: "quay.io/copy/nginx-unprivileged:1.24-alpine"}, want: []string{
		"line 2: http2: nginx 1.24 does not know it; remove it, or set spec.image to a version that does",
	}},
	"wrong context": {text: inHTTP("proxy_pass http://127.0.0.1;"), want: []string{
		"line 1: proxy_pass: not allowed here; it may stand in a location block or in an if of a location or in a limit_except block",
	}},
	"wrong context in a block": {text: inServer("location / { server_name a; }"), want: []string{
		"line 2: server_name: not allowed here; it may stand in a server block",
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
		"line 2: location: takes a block; write \"{\", what belongs into it, and \"}\"",
	}},
	"block too many": {text: inServer("root /a { }"), want: []string{
		"line 2: root: takes no block; end it with \";\"",
	}},

	"daemon": {text: inHTTP("daemon on;"), want: []string{
		"line 1: daemon: cannot be set here: nginx runs in the foreground, or its container would end; remove it",
	}},
	"pid": {text: inHTTP("pid /run/nginx.pid;"), want: []string{
		"line 1: pid: cannot be set here: the operator sets it to a file in /tmp; remove it",
	}},
	"user": {text: inHTTP("user nginx;"), want: []string{
		"line 1: user: cannot be set here: nginx runs without privileges and cannot change its user; remove it",
	}},
	"master_process": {text: inHTTP("master_process off;"), want: []string{
		"line 1: master_process: cannot be set here: the operator needs the master process to drain connections; remove it",
	}},
	"worker_processes": {text: inHTTP("worker_processes 4;"), want: []string{
		"line 1: worker_processes: cannot be set here: the operator sets it to auto; remove it, and set spec.resources to bound the processor",
	}},
	"worker_shutdown_timeout": {text: inHTTP("worker_shutdown_timeout 5m;"), want: []string{
		"line 1: worker_shutdown_timeout: cannot be set here: the operator sets it; remove it and set spec.drainSeconds",
	}},
	"load_module": {text: inHTTP("load_module modules/ngx_http_js_module.so;"), want: []string{
		"line 1: load_module: cannot be set here: the operator loads no modules; remove it, and set spec.image to an image that has the module compiled in",
	}},
	"events": {text: inHTTP("events { worker_connections 1024; }"), want: []string{
		"line 1: events: cannot be set here: the operator owns the events context; remove the block",
	}},
	"http": {text: "http {\nserver { listen 8080; }\n}\n", want: []string{
		"line 1: http: cannot be set here: the text stands in the http context already; keep what is in the block and remove `http {` and its `}`",
	}},
	"stream": {text: inHTTP("stream { }"), want: []string{
		"line 1: stream: cannot be set here: the operator serves HTTP only; remove the block",
	}},
	"main context": {text: inHTTP("worker_rlimit_nofile 1024;"), want: []string{
		"line 1: worker_rlimit_nofile: cannot be set here: it stands outside of the http context, which the operator owns; remove it",
	}},
	"event context": {text: inHTTP("multi_accept on;"), want: []string{
		"line 1: multi_accept: cannot be set here: it stands outside of the http context, which the operator owns; remove it",
	}},

	"size": {text: inServer("client_max_body_size 10MB;"), want: []string{
		"line 2: client_max_body_size: \"10MB\" is not a size like 512, 8k, 10m or 1g",
	}},
	"time": {text: inServer("proxy_read_timeout 30sec;"), want: []string{
		"line 2: proxy_read_timeout: \"30sec\" is not a time like 500ms, 30s or 5m",
	}},
	"number": {text: inServer("keepalive_requests many;"), want: []string{
		"line 2: keepalive_requests: \"many\" is not a whole number",
	}},
	"buffers": {text: inServer("proxy_buffers 8;"), want: []string{
		"line 2: proxy_buffers: takes 2 arguments, not 1; a semicolon may be missing at the end of the line before or after",
	}},
	"buffers' size": {text: inServer("proxy_buffers 8k 8;"), want: []string{
		"line 2: proxy_buffers: takes a number and a size, for example 8 16k",
	}},
	"protocol": {text: inServer("ssl_protocols TLSv1.2 TLSv1.4;"), want: []string{
		"line 2: ssl_protocols: \"TLSv1.4\" is none of its values; it takes SSLv2, SSLv3, TLSv1, TLSv1.1, TLSv1.2, TLSv1.3",
	}},
	"enumeration": {text: inServer("satisfy one;"), want: []string{
		"line 2: satisfy: \"one\" is none of its values; it takes all, any",
	}},
	"twice": {text: inServer("client_max_body_size 1m;", "client_max_body_size 2m;"), want: []string{
		"line 3: client_max_body_size: the block has client_max_body_size in line 2 already, and it may stand there only once; remove one of them",
	}},
	"root and alias": {text: inServer("location /a { root /a; alias /b; }"), want: []string{
		"line 2: alias: the block has root in line 2 already, and it may stand there only once; remove one of them",
	}},
	"twice outside": {text: inHTTP("sendfile on;", "sendfile off;"), want: []string{
		"line 2: sendfile: the block has sendfile in line 1 already, and it may stand there only once; remove one of them",
	}},

	"log file": {text: inServer("access_log /var/log/nginx/shop.log;"), want: []string{
		"line 2: access_log: /var/log/nginx/shop.log is on a read-only file system, and nobody would read it; write /dev/stdout",
	}},
	"error log": {text: inServer("error_log logs/error.log;"), want: []string{
		"line 2: error_log: logs/error.log is on a read-only file system, and nobody would read it; write /dev/stderr",
	}},
	"cache": {text: inHTTP("proxy_cache_path /var/cache/nginx keys_zone=a:1m;"), want: []string{
		"line 1: proxy_cache_path: /var/cache/nginx is on a read-only file system; write below /tmp, for example /tmp/nginx",
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
		"line 2: include: fastcgi_params is looked for in /etc/nginx-operator, where it is not; write include /etc/nginx/fastcgi_params",
	}},
	"relative include of ours": {text: inServer("include snippets/tls.conf;"), want: []string{
		"line 2: include: snippets/tls.conf is looked for in /etc/nginx-operator, where it is not; put its text here",
	}},
	"include of conf.d": {text: inHTTP("include /etc/nginx/conf.d/*.conf;"), want: []string{
		"line 1: include: /etc/nginx/conf.d/*.conf is no file of nginx's image that servers are configured with; put its text here",
	}},
	"include of itself": {text: inHTTP("include /etc/nginx-operator/servers.conf;"), want: []string{
		"line 1: include: /etc/nginx-operator/servers.conf does not exist when nginx starts; put its text here",
	}},
	"include in a map": {text: inHTTP("map $uri $new { include /etc/nginx/moved.map; }"), want: []string{
		"line 1: include: /etc/nginx/moved.map is no file of nginx's image that servers are configured with; put its text here",
	}},

	"location twice": {text: inServer("location /a { }", "location ^~ /a { }"), want: []string{
		"line 3: location: line 2 has the same location; remove one of them or put both together",
	}},
	"exact location twice": {text: inServer("location = /a { }", "location =/a { }"), want: []string{
		"line 3: location: line 2 has the same location; remove one of them or put both together",
	}},
	"modifier": {text: inServer("location == /a { }"), want: []string{
		"line 2: location: the modifier \"==\" does not exist; use =, ^~, ~ or ~*, or leave it out",
	}},
	"nested outside": {text: inServer("location /a {", "location /b { }", "}"), want: []string{
		"line 3: location: /b is outside of the location /a around it; put it beside it",
	}},
	"nested in exact": {text: inServer("location = /a {", "location /a/b { }", "}"), want: []string{
		"line 3: location: the location around it is exact (=) and can have none inside; put it beside it",
	}},
	"named in a location": {text: inServer("location /a {", "location @b { }", "}"), want: []string{
		"line 3: location: a location with a name stands in a server block only; put it there",
	}},
	"upstream twice": {text: inHTTP("upstream a { server 127.0.0.1; }", "upstream a { server 127.0.0.1; }"), want: []string{
		"line 2: upstream: line 1 defines a already; choose another name",
	}},
	"upstream without a server": {text: inHTTP("upstream a { keepalive 8; }"), want: []string{
		"line 1: upstream: there is no server in it; add one, for example `server app:8080;`",
	}},
	"upstream with a port": {text: "upstream pool { server 127.0.0.1:1; }\n" + inServer("location / { proxy_pass http://pool:80; }"), want: []string{
		"line 3: proxy_pass: pool is an upstream, whose servers have ports of their own; remove :80",
	}},
	"no scheme": {text: inServer("location / { proxy_pass 127.0.0.1:3000; }"), want: []string{
		"line 2: proxy_pass: 127.0.0.1:3000 has no scheme; write http://127.0.0.1:3000",
	}},
	"zone that is not there": {text: inServer("limit_req zone=login burst=5;"), want: []string{
		"line 2: limit_req: nothing makes the zone login; add a limit_req_zone with zone=login:10m outside of all blocks",
	}},
	"cache that is not there": {text: inServer("location / { proxy_cache pages; proxy_pass http://127.0.0.1; }"), want: []string{
		"line 2: proxy_cache: nothing makes the zone pages; add a proxy_cache_path with keys_zone=pages:10m outside of all blocks",
	}},
	"zone of another kind": {text: "limit_conn_zone $uri zone=a:1m;\n" + inServer("limit_req zone=a;"), want: []string{
		"line 3: limit_req: nothing makes the zone a; add a limit_req_zone with zone=a:10m outside of all blocks",
	}},
	"zone without a size": {text: inHTTP("limit_req_zone $uri zone=a rate=1r/s;"), want: []string{
		"line 1: limit_req_zone: there is no zone with a size in it; add one, for example zone=NAME:10m",
	}},
	"zone twice": {text: inHTTP("limit_req_zone $uri zone=a:1m rate=1r/s;", "limit_req_zone $args zone=a:1m rate=2r/s;"), want: []string{
		"line 2: limit_req_zone: line 1 makes a zone a already; choose another name",
	}},
	"log format that is not there": {text: inServer("access_log /dev/stdout json;"), want: []string{
		"line 2: access_log: no log_format before it defines json; add `log_format json '...';` outside of all blocks, above",
	}},
	"log format that comes too late": {text: inHTTP("access_log /dev/stdout json;", "log_format json '$uri';"), want: []string{
		"line 1: access_log: no log_format before it defines json; add `log_format json '...';` outside of all blocks, above",
	}},
	"log format twice": {text: inHTTP("log_format json '$uri';", "log_format json '$args';"), want: []string{
		"line 2: log_format: there is a format json already; choose another name",
	}},
	"variable": {text: inServer("proxy_set_header Host $htst;"), want: []string{
		"line 2: proxy_set_header: nothing sets the variable $htst, and nginx does not know it; correct the name, or set it with set or map",
	}},
	"variable in braces": {text: inServer(`return 301 "https://${hostt}/";`), want: []string{
		"line 2: return: nothing sets the variable $hostt, and nginx does not know it; correct the name, or set it with set or map",
	}},
	"variable in a map": {text: inHTTP("map $uri $a { default $b; }"), want: []string{
		"line 1: map: nothing sets the variable $b, and nginx does not know it; correct the name, or set it with set or map",
	}},

	"prefix in an expression": {text: inServer("location ~ \\.php$ {", "location /a { }", "}"), want: []string{
		"line 3: location: the location around it is a regular expression, and inside can only be others (~); put it beside it",
	}},
	"nobody's network": {text: inServer("deny al;"), want: []string{
		"line 2: deny: \"al\" is neither all nor an address or network such as 10.0.0.0/8",
	}},
	"network of a geo": {text: inHTTP("geo $x {", "defaul 1;", "}"), want: []string{
		"line 1: geo: \"defaul\" is no address or network such as 10.0.0.0/8",
	}},
	"proxy of a geo": {text: inHTTP("geo $x {", "proxy example;", "}"), want: []string{
		"line 2: proxy: \"example\" is no address or network such as 10.0.0.0/8",
	}},
	"return code": {text: inServer("return /new;"), want: []string{
		"line 2: return: \"/new\" is neither a status code nor an address; write for example `return 301 https://$host$request_uri;`",
	}},
	"error code": {text: inServer("error_page = /x;"), want: []string{
		"line 2: error_page: \"=\" is no status code from 300 to 599",
	}},
	"rate": {text: inHTTP("limit_req_zone $uri zone=a:1m rate=5/s;"), want: []string{
		"line 1: limit_req_zone: it has no parameter rate=5/s; correct or remove it",
	}},
	"parameter of a server": {text: inHTTP("upstream a { server 127.0.0.1:80 weigt=2; }"), want: []string{
		"line 1: server: it has no parameter weigt=2; correct or remove it",
	}},
	"port of an upstream": {text: inServer("location / { proxy_pass http://127.0.0.1:70000; }"), want: []string{
		"line 2: proxy_pass: 70000 is no port from 1 to 65535",
	}},
	"keepalive twice": {text: inHTTP("upstream a { server 127.0.0.1;", "keepalive 1; keepalive 2; }"), want: []string{
		"line 2: keepalive: the block has keepalive in line 2 already, and it may stand there only once; remove one of them",
	}},
	"first buffer too large": {text: inServer("proxy_buffer_size 16k;"), want: []string{
		"line 2: proxy_buffer_size: 8 proxy_buffers of 4k are too few for proxy_busy_buffers_size of 32k; write `proxy_buffers 8 16k;` beside it",
	}},
	"one buffer": {text: inServer("fastcgi_buffers 1 4k;"), want: []string{
		"line 2: fastcgi_buffers: there have to be at least 2 fastcgi_buffers",
	}},
	"busy buffers too small": {text: inServer("proxy_busy_buffers_size 8k;", "location / { proxy_buffers 4 16k; }"), want: []string{
		"line 3: proxy_buffers: proxy_busy_buffers_size of 8k is smaller than a buffer of 16k; make it at least as large",
	}},

	"condition": {text: inServer("if ($request_method OPTIONS) { return 204; }"), want: []string{
		"line 2: if: a condition is ($variable), ($variable = text), ($variable ~ expression) or (-f file), with blanks around the operator",
	}},
	"name of a variable": {text: inServer("set target /a;"), want: []string{
		"line 2: set: the name of a variable begins with $; write $target",
	}},
	"key twice": {text: inHTTP("map $uri $x {", "/a b;", "/A c;", "}"), want: []string{
		"line 3: /A: the map has this key already; remove one of them",
	}},
	"no port": {text: inServer("location / { fastcgi_pass 127.0.0.1; }"), want: []string{
		"line 2: fastcgi_pass: 127.0.0.1 has no port; add one, as in 127.0.0.1:9000",
	}},
	"parameter of a cache": {text: inHTTP("proxy_cache_path /tmp/c keys_zone=a:1m use_tmp_path=off;"), want: []string{
		"line 1: proxy_cache_path: it has no parameter use_tmp_path=off; correct or remove it",
	}},

	"verification without an authority": {text: inServer("ssl_certificate /etc/nginx/tls/shop/tls.crt;", "ssl_certificate_key /etc/nginx/tls/shop/tls.key;", "ssl_verify_client on;"), spec: mounted(), want: []string{
		"line 4: ssl_verify_client: there is nothing to verify with; add `ssl_client_certificate /etc/nginx/tls/NAME/ca.crt;` with a NAME of spec.tls",
	}},

	"address from a variable": {text: inServer("set $target https://a;", "return $target;"), want: []string{
		"line 3: return: \"$target\" is neither a status code nor an address; write for example `return 301 https://$host$request_uri;`",
	}},
	"header with blanks": {text: inServer("add_header X a b;"), want: []string{
		`line 2: add_header: after the value there can only be always, not "b"; put a value with blanks into quotes`,
	}},
	"zone used twice": {text: "limit_conn_zone $uri zone=a:1m;\n" + inServer("limit_conn a 1;", "limit_conn a 2;"), want: []string{
		"line 4: limit_conn: line 3 uses the zone a in this block already; remove one of them",
	}},
	"parameter of the file cache": {text: inServer("open_file_cache max=1 inactve=1s;"), want: []string{
		"line 2: open_file_cache: it has no parameter inactve=1s; correct or remove it",
	}},
	"port of a server": {text: inHTTP("upstream a { server 127.0.0.1:0; }"), want: []string{
		"line 1: server: 0 is no port from 1 to 65535",
	}},

	"port nobody listens on": {text: inServer(), spec: twoPorts(), want: []string{
		"listen: spec.ports[1].port 8081: no server listens on it; add `listen 8081;` to a server, or declare the ports that the servers listen on",
	}},
	"default port nobody listens on": {text: "server { listen 9090; }", want: []string{
		"listen: port 8080 (the default of spec.ports): no server listens on it; add `listen 8080;` to a server, or declare the ports that the servers listen on",
	}},
	"no listen": {text: "server { server_name a; }", want: []string{
		"listen: port 8080 (the default of spec.ports): no server listens on it; add `listen 8080;` to a server, or declare the ports that the servers listen on",
	}},
	"only on the loopback address": {text: "server { listen 127.0.0.1:8080; }", want: []string{
		"listen: port 8080 (the default of spec.ports): no server listens on it; add `listen 8080;` to a server, or declare the ports that the servers listen on",
	}},
	"port of the probes": {text: "server {\nlisten 8080;\nlisten 18080;\n}", want: []string{
		"line 3: listen: port 18080 is where the operator's own server answers the kubelet's probes; choose another port",
	}},
	"port without privileges": {text: "server {\nlisten 8080;\nlisten 80;\n}", want: []string{
		"line 3: listen: nginx may not listen on port 80 without privileges; declare it in spec.ports, or use a port from 1024 on",
	}},
	"address of another machine": {text: "server {\nlisten 8080;\nlisten 192.0.2.1:8080;\n}", want: []string{
		"line 3: listen: a Pod does not have the address 192.0.2.1; write `listen 8080;` and choose between servers with server_name",
	}},
	"socket in the file system": {text: "server {\nlisten 8080;\nlisten unix:/tmp/x.sock;\n}", want: []string{
		"line 3: listen: a socket in the file system outlives a container that crashed, and keeps the next from starting; listen on 127.0.0.1 and a port",
	}},
	"port too high": {text: "server {\nlisten 8080;\nlisten 80800;\n}", want: []string{
		"line 3: listen: 80800 has no port from 1 to 65535; write for example `listen 8080;`",
	}},
	"same listen twice": {text: "server {\nlisten 8080;\nlisten 0.0.0.0:8080;\n}", want: []string{
		"line 3: listen: the server listens on 0.0.0.0:8080 already; remove one of the two",
	}},
	"default server twice": {text: "server { listen 8080 default_server; }\nserver { listen 8080 default_server; }", want: []string{
		"line 2: listen: line 1 has the default server of port 8080; remove default_server from one of them",
	}},
	"socket options twice": {text: "server { listen 8080 reuseport; }\nserver { listen 8080 backlog=9; }", want: []string{
		"line 2: listen: line 1 sets the socket's options (such as reuseport) already; set them once for each address",
	}},
	"parameter of listen": {text: "server { listen 8080 spdy; }", want: []string{
		"line 1: listen: it has no parameter spdy; correct or remove it",
	}},
	"both families twice": {text: "server {\nlisten 8080;\nlisten [::]:8080 ipv6only=off;\n}", want: []string{
		"line 2: listen: line 3 listens on port 8080 for IPv4 too (ipv6only=off); remove one of them",
	}},
	"TLS on a plain port": {text: "server { listen 8080 ssl;\nssl_certificate /etc/nginx/tls/shop/tls.crt; ssl_certificate_key /etc/nginx/tls/shop/tls.key; }", spec: mounted(), want: []string{
		"line 1: listen: port 8080 (the default of spec.ports) is for plain HTTP; declare the port in spec.tls instead, or remove ssl",
	}},
	"plain on a TLS port": {text: "server { listen 8080;\nlisten 8443; }", spec: tlsSpec("shop"), want: []string{
		"line 2: listen: spec.tls[0].port 8443 is for TLS; write `listen 8443 ssl;`",
	}},
	"TLS without a certificate": {text: "server { listen 8080;\nlisten 8443 ssl; }", spec: tlsSpec("shop"), want: []string{
		"line 2: listen: the server has no certificate; add `ssl_certificate /etc/nginx/tls/NAME/tls.crt;` and `ssl_certificate_key /etc/nginx/tls/NAME/tls.key;` with a NAME of spec.tls",
	}},
	"certificate without a key": {text: "server { listen 8080;\nlisten 8443 ssl;\nssl_certificate /etc/nginx/tls/shop/tls.crt; }", spec: tlsSpec("shop"), want: []string{
		"line 3: ssl_certificate: there is no ssl_certificate_key for it; add one",
	}},
	"certificate that is not mounted": {text: inServer("ssl_certificate /etc/nginx/tls/other/tls.crt;", "ssl_certificate_key /etc/nginx/tls/other/tls.key;"), spec: mounted(), want: []string{
		"line 2: ssl_certificate: spec.tls has no Secret other; add `- secretName: other` to spec.tls",
		"line 3: ssl_certificate_key: spec.tls has no Secret other; add `- secretName: other` to spec.tls",
	}},
	"certificate with a relative path": {text: inServer("ssl_certificate certs/tls.crt;", "ssl_certificate_key /etc/nginx/tls/shop/tls.key;"), spec: mounted(), want: []string{
		"line 2: ssl_certificate: certs/tls.crt is looked for in /etc/nginx-operator, where it is not; write /etc/nginx/tls/NAME/tls.crt with a NAME of spec.tls",
	}},
	"key in the place of a certificate": {text: inServer("ssl_certificate /etc/nginx/tls/shop/tls.key;", "ssl_certificate_key /etc/nginx/tls/shop/tls.key;"), spec: mounted(), want: []string{
		"line 2: ssl_certificate: /etc/nginx/tls/shop/tls.key is the other file of the pair; write /etc/nginx/tls/shop/tls.crt",
	}},
}

func TestRefused(t *testing.T) {
	for name, test := range refusedConfigurations {
		t.Run(name, func(t *testing.T) {
			var got []string
			test.spec.Config = &v1alpha2.Config{Inline: test.text}
			for _, problem := range Check(&test.spec, test.text) {
				got = append(got, problem.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestManyProblems(t *testing.T) {
	got := Check(&v1alpha2.NginxOperatorSpec{}, inServer(strings.Repeat("proxy_pas a;\n", 1000)))
	if last := got[len(got)-1].String(); len(got) != shown+1 || last != "and 980 more" {
		t.Errorf("%d problems, the last %q", len(got), last)
	}
}

func TestTooLarge(t *testing.T) {
	got := fmt.Sprint(Check(&v1alpha2.NginxOperatorSpec{}, strings.Repeat("# comment\n", 110_000)))
	if !strings.Contains(got, "bytes, and a ConfigMap takes") {
		t.Error(got)
	}
}
