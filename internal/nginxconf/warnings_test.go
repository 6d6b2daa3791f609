package nginxconf

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// warned lists configurations with at most warnings.
var warned = map[string]checked{
	"nothing": {text: inServer("location / { proxy_pass http://127.0.0.1:3000; }")},
	"left to nginx": {
		text: inServer(
			"location /a { proxy_pass http://app:3000; }", "location /b { proxy_pass http://$arg_host; }",
			"resolver dns.example.com;", "ssl_dhparam /opt/dhparam.pem;",
			"access_log /var/log/nginx/access.log;", "error_log /var/log/nginx/error.log warn;",
		),
	},
	"port that is not declared": {
		text: "server { listen 8080; }\nserver { listen 9090; }\nserver { listen 127.0.0.1:9091; }\n" +
			"server { listen 9443 ssl; ssl_reject_handshake on; }",
	},
	"server without a listen": {
		text: "server { listen 8080; }\nserver { server_name a; }",
	},
	"deprecated": {
		text: "server { listen 8080 http2; }\n",
	},
	"vulnerable rewrites": {
		spec: v1alpha2.NginxOperatorSpec{Image: "nginx:1.30"},
		text: inServer("rewrite ^/(.*)$ /new?c=$1;", "rewrite ^/((.*))$ /page?$1$2 last;"),
	},
	"resolver of Docker":      {text: inServer("resolver 127.0.0.11:53 valid=10s;")},
	"host without a resolver": {text: inServer("set $b app;", "location / { proxy_pass http://$b; }")},
	"names of a certificate": {
		spec: tlsSpec("shop"), names: map[string][]string{"shop": {"shop.example.com", "www.example.com"}},
		text: inServer("listen 8443 ssl;", "server_name blog.example.com;",
			"ssl_certificate /etc/nginx/tls/shop/tls.crt;", "ssl_certificate_key /etc/nginx/tls/shop/tls.key;"),
	},
	"content that is not served": {spec: v1alpha2.NginxOperatorSpec{Content: &v1alpha2.Content{}}, text: inServer()},
	"keys that are served": {text: inServer("root /etc/nginx/tls;", "location /a { root /etc/nginx-operator; }",
		"location /b { root /proc; }", "location /c { root /run/secrets; }")},
	"not deprecated there": {text: "server { listen 8080 http2; }\n", spec: v1alpha2.NginxOperatorSpec{Image: "nginx:1.24.0"}},
	"QUIC": {
		text: "server { listen 8080;\nlisten 8080 quic; }\n",
	},
	"another key of a Secret": {
		spec: mounted(),
		text: inServer("ssl_client_certificate /etc/nginx/tls/shop/ca.crt;"),
	},
	"passwords among static files": {
		text: inServer("auth_basic_user_file /usr/share/nginx/html/.htpasswd;"),
	},
	"requests that are not counted": {
		spec: requestMetrics(),
		text: "access_log off;\n" + inServer("access_log /dev/stdout;", "location /a { access_log off; access_log /a; }",
			"location /b { access_log syslog:server=127.0.0.1:9515,facility=local7,tag=nginx_requests,nohostname nginx_operator_requests; }",
			"location /c { access_log /dev/stdout; access_log "+
				"syslog:server=127.0.0.1:9514,facility=local7,tag=nginx_requests,nohostname nginx_operator_requests; }"),
	},
	"requests that are counted twice": {
		spec: requestMetrics(9514, 8080),
		text: "access_log syslog:server=127.0.0.1:9515,facility=local7,tag=nginx_requests,nohostname nginx_operator_requests;\n" +
			"server { listen 9514; listen 8080; }",
	},
	"access logs with request metrics": {spec: requestMetrics(), text: "access_log /dev/stdout;\n" + inServer()},
	"access logs":                      {text: "access_log off;\n" + inServer("access_log off;")},
	"include of static files": {
		spec: v1alpha2.NginxOperatorSpec{Content: &v1alpha2.Content{}},
		text: "include /usr/share/nginx/html/servers.inc;",
	},
}

// TestUnused verifies that content and certificates cause a warning only if no directive, and no
// file whose text is unknown, can serve them.
func TestUnused(t *testing.T) {
	all := []string{"spec.content", "spec.tls[0]"}
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing":     {text: inServer(), want: all},
		"other files": {text: inServer("root /srv/$host;", "location /a { alias /usr/share/nginx/other/; }"), want: all},
		"both": {text: inServer(
			"root /usr/share/nginx/html;", "ssl_certificate /etc/nginx/tls/shop/tls.crt;", "ssl_certificate_key /etc/nginx/tls/shop/tls.key;",
		)},
		"directory above":            {text: inServer("location /html/ { root /usr/share/nginx; }"), want: all[1:]},
		"variable":                   {text: inServer("root $root;"), want: all[1:]},
		"variable below a directory": {text: inServer("root /usr/share/nginx/$host;"), want: all[1:]},
		"certificate of a variable":  {text: inServer("ssl_certificate /etc/nginx/tls/$ssl_server_name/tls.crt;"), want: all[:1]},
		"directory of a variable":    {text: inServer("set $dir /etc/nginx/tls/shop;", "ssl_certificate $dir/tls.crt;"), want: all[:1]},
		"part of the directory":      {text: inServer("ssl_certificate /etc/nginx/tls/s$a/tls.crt;"), want: all[:1]},
		"another directory":          {text: inServer("ssl_certificate /etc/nginx/tls/a$a/tls.crt;"), want: all},
		"file of spec.files":         {text: inServer("include /etc/nginx/files/a.conf;")},
		"file of the image":          {text: inServer("include /etc/nginx/conf.d/*.conf;")},
		"file in a map":              {text: inHTTP("map $host $root { include /etc/nginx/files/a.conf; }")},
		"file of the image in a map": {text: inHTTP("map $host $root { include /opt/roots.map; }")},
		"file with a known content":  {text: inServer("include /etc/nginx/mime.types;"), want: all},
		"mask that matches no file":  {text: inServer("include /etc/nginx/files/*.inc;"), want: all},
	} {
		t.Run(name, func(t *testing.T) {
			spec := withFiles("a.conf")
			spec.Content, spec.TLS = &v1alpha2.Content{}, []v1alpha2.TLS{{SecretName: "shop"}}
			var fields []string
			_, warnings := Check(&spec, Whole(test.text), nil, nil)
			for _, warning := range warnings {
				if warning.Field != "" {
					fields = append(fields, warning.Field)
				}
			}
			if diff := cmp.Diff(test.want, fields); diff != "" {
				t.Error(diff)
			}
		})
	}
}
