package nginxconf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// outer returns a case with spec.nginx.main, and a configuration without a finding.
func outer(main, events string, files ...v1alpha2.File) checked {
	spec := v1alpha2.NginxOperatorSpec{Nginx: &v1alpha2.Nginx{Main: main, Events: events}, Files: files}
	return checked{spec: spec, text: inServer()}
}

func loading(text string, modules ...string) checked {
	return checked{spec: v1alpha2.NginxOperatorSpec{Nginx: &v1alpha2.Nginx{Modules: modules}}, text: text}
}

var (
	fromConfigMap = v1alpha2.File{Path: "tuning.conf", ConfigMapRef: &v1alpha2.FileReference{Name: "shop", Key: "a"}}
	fromSecret    = v1alpha2.File{Path: "secret.conf", SecretRef: &v1alpha2.ObjectKeyReference{Name: "shop", Key: "a"}}
)

// outerCases are texts of contexts outside of http.
func outerCases() map[string]checked {
	included := outer("include /etc/nginx/files/tuning.conf;", "", fromConfigMap)
	included.texts = map[string]string{"tuning.conf": "pcre_jit on;\nuser root;"}
	variable := outer("env TZ;\nenv TZ=UTC;\nenv HOME;", "")
	variable.spec.Env = []v1alpha2.EnvVar{{Name: "TZ", Value: "UTC"}}
	vendor := outer("frobnicate on;\ndebug_points stop;", "debug_connection 127.0.0.1;")
	vendor.spec.Image = "registry.example.com/web:1"
	return map[string]checked{
		"main and events": outer("worker_rlimit_nofile 131072;\nworker_cpu_affinity auto;\npcre_jit on;\ntimer_resolution 100ms;\n"+
			"thread_pool default threads=32 max_queue=65536;\nssl_object_cache_inheritable off;\n",
			"multi_accept on;\nuse epoll;\naccept_mutex on;\nepoll_events 512;"),
		"main owned": outer("user root;\nworker_processes 4;\nworker_connections 9;\nworker_shutdown_timeout 1s;\nerror_log /dev/stderr debug;\n"+
			"pid /tmp/x;\ndaemon on;\nmaster_process off;\nlock_file /tmp/l;\nload_module modules/x.so;\nload_module;\n"+
			"events { }\nhttp { }\nstream { }\nmail { }", ""),
		"events owned":            outer("", "worker_connections 9;\nuser root;\nhttp { }\npcre_jit on;\ngzip on;"),
		"main of http":            outer("gzip on;\nproxy_pass http://a;\nmulti_accept on;\nsmtp_auth plain;\nfrobnicate on;", ""),
		"main without semicolon":  outer("pcre_jit on", ""),
		"events closes its block": outer("", "multi_accept on;\n}\nhttp {"),
		"main without effect": outer("worker_priority -5;\nworker_rlimit_nofile 2000000;\n"+
			"worker_rlimit_core 1m;\nworking_directory /tmp;\nworker_priority 5;",
			"debug_connection 127.0.0.1;"),
		"main of another image": vendor,
		"main with variables":   variable,
		"main includes a file":  included,
		"main includes any file": outer("include /etc/nginx/modules-enabled/*.conf;\ninclude tuning.conf;\n"+
			"include /etc/nginx/files/other.conf;", "", fromConfigMap),
		"main includes a Secret": outer("include /etc/nginx/files/*.conf;", "", fromConfigMap, fromSecret),
		"modules": loading(inHTTP("js_import main from /etc/nginx/files/a.js;", "geoip_country /x;", "brotli on;", "otel_trace on;"),
			"ngx_http_js_module", "ngx_http_geoip_module", "ngx_http_brotli_filter_module", "ngx_otel_module"),
		"module that is not listed": loading(inHTTP("vhost_traffic_status_zone;"), "ngx_http_vhost_traffic_status_module"),
		"modules that are not declared": loading(inHTTP("js_import main from a.js;", "brotli on;", "brotli_static on;", "geoip2 /x { }",
			"image_filter test;", "perl_modules /x;", "otel_trace on;", `more_set_headers "X: 1";`)),
		"OpenTelemetry elsewhere": {spec: v1alpha2.NginxOperatorSpec{Image: "registry.example.com/web:1"}, text: inHTTP("otel_trace on;")},
	}
}

// TestOpenFiles verifies the limit that admission and the alert assume.
func TestOpenFiles(t *testing.T) {
	for text, want := range map[string]int64{
		"": 1024, "pcre_jit on;": 1024, "# worker_rlimit_nofile 9;": 1024, "worker_rlimit_nofile 65535;": 65535,
		"worker_rlimit_nofile x;": 1024, "worker_rlimit_nofile 0;": 1, "worker_rlimit_nofile 99999999999;": 1<<31 - 1,
		"pcre_jit on; worker_rlimit_nofile 200": 1024,
	} {
		if got := OpenFiles(&v1alpha2.NginxOperatorSpec{Nginx: &v1alpha2.Nginx{Main: text}}); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// TestRenderOuterTexts verifies that each text is a file of its own, at one place of nginx.conf.
func TestRenderOuterTexts(t *testing.T) {
	plain := v1alpha2.NginxOperatorSpec{}
	spec := v1alpha2.NginxOperatorSpec{Nginx: &v1alpha2.Nginx{
		Main: "pcre_jit on;", Events: "use epoll;", Modules: []string{"ngx_http_js_module", "ngx_otel_module"},
	}}
	before, err := Render(&plain, nil, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Render(&spec, nil, false, nil)
	if err != nil {
		t.Fatal(err)
	}

	want := Files{
		MainContextFile: "pcre_jit on;", EventsFile: "use epoll;",
		ModulesFile: "load_module modules/ngx_http_js_module.so;\nload_module modules/ngx_otel_module.so;\n",
	}
	for name, text := range want {
		if diff := cmp.Diff(text, files[name]); diff != "" {
			t.Error(name, diff)
		}
		if FieldOf(Directory+"/"+name) == "" || FieldOf("/tmp/"+name) != "" {
			t.Errorf("%s has the field %q", name, FieldOf(Directory+"/"+name))
		}
	}
	for _, include := range []string{
		"include /etc/nginx-operator/modules.conf;\n",
		"\n# The directives of the NginxOperator.\ninclude /etc/nginx-operator/main.conf;\n",
		"    include /etc/nginx-operator/events.conf;\n",
	} {
		if count := strings.Count(files[MainFile], include); count != 1 {
			t.Errorf("%q is there %d times", include, count)
		}
		files[MainFile] = strings.Replace(files[MainFile], include, "", 1)
	}
	if diff := cmp.Diff(before[MainFile], files[MainFile]); diff != "" {
		t.Error(diff)
	}
}
