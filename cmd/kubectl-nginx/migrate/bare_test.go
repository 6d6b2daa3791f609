package migrate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/validation"
)

// fromFile returns the result for a configuration in a file without manifests.
func fromFile(t *testing.T, file, text string) (result Result, printed string) {
	t.Helper()
	result, err := FromFile(file, text, "")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := result.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return result, string(raw)
}

// TestFiles compares the output for each configuration in testdata with a golden file.
// nginx.conf and low-port.conf are the texts of real configurations that were pasted as a whole.
// The API server accepts each result.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.conf")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			raw, err := os.ReadFile(file) //nolint:gosec // a file of testdata
			if err != nil {
				t.Fatal(err)
			}
			if !IsConfiguration(raw) {
				t.Error("it is not recognized")
			}
			result, printed := fromFile(t, filepath.Base(file), string(raw))
			fixture.Golden(t, strings.TrimSuffix(filepath.Base(file), ".conf")+".yaml", printed)
			if errs := validation.Complete(&result.Object.Spec, field.NewPath("spec")); len(errs) > 0 {
				t.Errorf("admission rejects it: %v", errs)
			}
		})
	}
}

// TestIsConfiguration verifies that the first words tell a configuration from a manifest.
func TestIsConfiguration(t *testing.T) {
	for text, want := range map[string]bool{
		"user nginx;":                        true,
		"\n# a\n  # b\n\thttp\n{ }":          true,
		"events{}":                           true,
		"daemon;":                            true,
		"http {\r\n}\r\n":                    true,
		"# apiVersion: v1\nserver { }":       true,
		"":                                   false,
		"# a comment":                        false,
		"apiVersion: v1\nkind: ConfigMap":    false,
		"kind : ConfigMap":                   false,
		"---\nkind: ConfigMap":               false,
		"{\"kind\": \"ConfigMap\"}":          false,
		"- kind: ConfigMap":                  false,
		"\"kind\": ConfigMap":                false,
		"# user nginx;\napiVersion: v1":      false,
		"\x1b[2J":                            false,
		"replicas: 2\nserver: {listen: 80;}": false,
	} {
		if got := IsConfiguration([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// TestErrorsOfFiles verifies that a file that cannot be converted causes an error with the reason.
func TestErrorsOfFiles(t *testing.T) {
	const noServer = "nginx.conf has neither an http block nor a server block. Use the file that has it, or manifests with apiVersion and kind"
	for text, want := range map[string]string{
		"hello world;":                            noServer,
		"events {} stream { server {} }":          noServer,
		"load_module modules/a.so;":               noServer,
		"http { server { listen 80; }":            `failed to read nginx.conf: line 1: unexpected end of file, expecting "}"`,
		"server { listen 80 }":                    `failed to read nginx.conf: line 1: unexpected "}"`,
		"hello world":                             `failed to read nginx.conf: line 1: unexpected end of file`,
		strings.Repeat("a {", 100_000):            "failed to read nginx.conf: line 1: more than 32 nested blocks",
		strings.Repeat("a;", 60_000):              "failed to read nginx.conf: the configuration has 60000 directives",
		strings.Repeat("#", 1<<20):                "failed to read nginx.conf: the configuration has 1048576 bytes",
		"server { a " + strings.Repeat("b", 5000): "failed to read nginx.conf: line 1: too long parameter",
	} {
		if _, err := FromFile("-", text, ""); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.50s: got %v, want %q", text, err, want)
		}
	}
}

// TestNoLineIsSilent verifies that each directive is in the result, or a comment lists it.
func TestNoLineIsSilent(t *testing.T) {
	const base = "worker_rlimit_nofile 8192; %s\nevents { multi_accept on; %s }\nhttp { gzip on; %s server { listen 8080; %s } }"
	_, before := fromFile(t, "a.conf", fmt.Sprintf(base, "", "", "", ""))
	for context, lines := range [][]string{
		{
			"user a;", "pid /a;", "daemon off;", "master_process off;", "lock_file /a;", "worker_shutdown_timeout 5s;", "include /a;",
			"stream {}", "mail {}", "rtmp {}", "server {}", "worker_processes 3;", "worker_processes 0;", "worker_processes 1025;",
			"worker_processes many;", "error_log /a;", "error_log stderr info;", "error_log stderr loud;", "load_module a.so;",
			"load_module a/b/;", "load_module A.so;", "env A;", "env A=b;", "env;", "thread_pool a;", "no_such_directive;", "http { a; }",
		},
		{"use epoll;", "worker_connections 63;", "worker_connections 64;", "include /a;", "debug_connection 192.0.2.1;", "a { b; }"},
		{
			"include mime.types;", "include /etc/nginx/mime.types;", "include conf.d/*;", "include a.conf;", "server { }", "access_log /a;",
			"error_log /a;", "proxy_temp_path /a;", "proxy_cache_path /var/cache/a keys_zone=a:1m;", "proxy_cache_path /a keys_zone=a:1m;",
		},
		{"listen 80;", "listen 81 ssl;", "root html;", "root /a;", "ssl_certificate a;", "location / { alias html/a; }", "error_log /a;"},
	} {
		for _, line := range lines {
			args := []any{"", "", "", ""}
			args[context] = line
			if _, after := fromFile(t, "a.conf", fmt.Sprintf(base, args...)); after == before {
				t.Errorf("%s has no effect", line)
			}
		}
	}
	// The defaults of nginx or of the operator have none.
	const equal = "worker_rlimit_nofile 8192; worker_processes auto;\nevents { multi_accept on; }\nhttp { gzip on; server { listen 8080; } }"
	if _, after := fromFile(t, "a.conf", equal); after != before {
		t.Errorf("worker_processes auto has an effect:\n%s", after)
	}
}

// TestSplit verifies single rules of the conversion of a file: what the output has or lacks.
func TestSplit(t *testing.T) {
	many := ""
	for i := range maxModules + 1 {
		many += fmt.Sprintf("load_module modules/m%d.so; ", i)
	}
	for name, test := range map[string]struct{ text, want, without string }{
		"two http blocks": {"events {} http { gzip on; } http { server { listen 80; } }", "gzip on;\n      server {", "equivalent"},
		"a module twice":  {"load_module a.so; load_module modules/a.so; http { }", "    modules:\n    - a\n", "equivalent"},
		"too many modules": {
			many + "http {}", "line 1: load_module modules/m16.so: spec.nginx.modules has at most 16 modules", "- m16\n",
		},
		"the value of env has =":     {"env A=b=c; http {}", "  - name: A\n    value: b=c\n", "equivalent"},
		"a variable twice":           {"env A=b; env A=c; env A; http {}", "  env:\n  - name: A\n    value: c\n", "value: b"},
		"error_log without a level":  {"error_log stderr; http {}", "errorLogLevel: error\n", "equivalent"},
		"a long directive":           {"user " + strings.Repeat("a", 4000) + "; http {}", "aaa...: nginx runs as", strings.Repeat("a", 101)},
		"no http content":            {"events {} http { include conf.d/*; }", "put their text in spec.config", "config:\n"},
		"a server without listen":    {"server { return 204; }", "listen 80;", "not valid"},
		"an include can have listen": {"server { include /a.conf; return 204; }", "is in the image", "listen 80;"},
		"ports": {
			"server { listen 81; listen [::]:81; listen 127.0.0.1:82; listen unix:/a; listen 83 quic; listen 84-85; listen 443 ssl; }",
			"  ports:\n  - name: port-81\n    port: 81\n  - name: port-84\n    port: 84\n  - name: port-85\n    port: 85\n" +
				"  - appProtocol: https\n    name: port-443\n    port: 443\n", "- name: port-82",
		},
		"two caches": {
			"proxy_cache_path /srv/a/b keys_zone=a:1m; proxy_cache_path /srv/a/c keys_zone=b:1m; server { listen 80; }",
			"path: /srv/a\n", "not valid",
		},
		"caches without a common directory": {
			"proxy_cache_path /srv/a/b keys_zone=a:1m; proxy_cache_path /data keys_zone=b:1m; server { listen 80; }",
			"path: /srv/a/b\n", "path: /\n",
		},
		"a cache at the place itself": {
			"proxy_cache_path /srv/ keys_zone=a:1m; proxy_cache_path /tmp/a keys_zone=b:1m; server { listen 80; }",
			"not valid yet, correct it: spec.config.inline: Invalid value: line 1: proxy_cache_path /srv/", "  cache:",
		},
		"Lua": {
			"server { listen 80; content_by_lua_block { ngx.say('}') } }", "        content_by_lua_block { ngx.say('}') }\n", "equivalent",
		},
		"words that start with #": {
			"map $a $b { '#' \"#b\"; } server { listen 80; } # a comment", "        \"#\" \"#b\";\n      }\n", "not valid",
		},
		"a server with a relative file": {"server { listen 80; include fastcgi_params; }", "include /etc/nginx/fastcgi_params;", "not valid"},
		"paths that the Pods have": {
			"server { listen 80; root /usr/share/nginx/html/a; access_log /dev/stdout; error_log syslog:server=a; access_log off; " +
				"auth_basic_user_file /etc/nginx/files/a; }", "kind: NginxOperator", "a.conf, line",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := fromFile(t, "a.conf", test.text)
			if !strings.Contains(got, test.want) || strings.Contains(got, test.without) {
				t.Errorf("want %q, and not %q, in\n%s", test.want, test.without, got)
			}
		})
	}
}

// TestNamesOfFiles verifies that the default name is valid for each name of a file.
func TestNamesOfFiles(t *testing.T) {
	for file, want := range map[string]string{
		"nginx.conf": "nginx-web", "-": "nginx-web", "shop.example.com.conf": "shop-example-com-web", "Shop_1": "shop-1-web", "63": "nginx-web",
		strings.Repeat("a", 60): "nginx-web", "é.conf": "nginx-web", "a.conf.bak": "a-conf-bak-web", "": "nginx-web",
	} {
		result, err := FromFile(file, "server { listen 80; }", "")
		if err != nil || result.Object.Name != want {
			t.Errorf("%q: %q (%v), want %q", file, result.Object.Name, err, want)
		}
	}
	if result, err := FromFile("a.conf", "server {}", "other"); err != nil || result.Object.Name != "other" {
		t.Errorf("--name is ignored: %v", err)
	}
}

// TestWholeFileOfADeployment verifies that a ConfigMap's nginx.conf is split as a file is.
func TestWholeFileOfADeployment(t *testing.T) {
	const text = "worker_rlimit_nofile 8192;\nload_module modules/a.so;\nenv TZ;\nenv POOL;\nevents { multi_accept on; }\n" +
		"http { include mime.types; include fastcgi_params; server { listen 80; root html; } }\n"
	manifests := deployment("volumes: [{name: c, configMap: {name: c}}], ",
		"image: a, env: [{name: TZ, value: UTC}], volumeMounts: [{name: c, mountPath: /etc/nginx}]") +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  nginx.conf: |\n    " +
		strings.ReplaceAll(text, "\n", "\n    ") + "\n"
	result := only(t, manifests)
	spec := result.Object.Spec
	if spec.Nginx.Main != "worker_rlimit_nofile 8192;\n" || spec.Nginx.Events != "multi_accept on;\n" || spec.Nginx.Modules[0] != "a" {
		t.Errorf("spec.nginx is %+v", spec.Nginx)
	}
	if len(spec.Env) != 1 || !strings.HasPrefix(spec.Config.Inline, "include /etc/nginx/fastcgi_params;\nserver {") {
		t.Errorf("the spec is %+v, %s", spec.Env, spec.Config.Inline)
	}
	lost := strings.Join(result.Lost, "\n")
	for _, want := range []string{"line 4: env POOL: ", "line 6: include mime.types: the operator includes " + nginxconf.MimeTypes} {
		if !strings.Contains(lost, want) {
			t.Errorf("no comment has %q:\n%s", want, lost)
		}
	}
	if strings.Contains(lost, "env TZ") || !strings.Contains(spec.Config.Inline, "root html;") {
		t.Errorf("the image and spec.env are ignored:\n%s\n%s", lost, spec.Config.Inline)
	}
}
