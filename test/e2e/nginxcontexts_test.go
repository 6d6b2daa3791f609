package e2e

// Directives of the main and events contexts, and dynamic modules, on the real nginx.
//
//   - nginx runs with each line of spec.nginx.main and events once, and the limit of open files is
//     the declared one. An event method that this system lacks is rolled back, with the field and
//     the line in the status.
//   - njs and brotli answer, and a changed script is served. A script with an error and a module
//     that the image lacks are rolled back, with nginx's message.

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness/mutate"
)

func testContexts(t *testing.T) {
	object := newObject(newNamespace(t, restricted), "web", 1)
	object.Spec.DrainSeconds = ptr.To(mutate.ShortDrain)
	object.Spec.Nginx = &v1alpha2.Nginx{
		Main: "worker_rlimit_nofile 8192;\nworker_cpu_affinity auto;\nworker_priority -5;\npcre_jit on;\n" +
			"timer_resolution 100ms;\nthread_pool default threads=32 max_queue=65536;\n",
		Events: "multi_accept on;\nuse epoll;\n",
	}
	object.Spec.Config = &v1alpha2.Config{Inline: "server {\n    listen 8080;\n    aio threads;\n    return 200 \"tuned\\n\";\n}\n"}
	must(t, suite.admin.Create(t.Context(), object))
	waitForReady(t, object)
	url := suite.reach.service(object.Namespace, "web", 8080)
	answers(t, object.Namespace, url, "tuned")

	pod := onlyPod(t, object).Name
	effective := kubectl(t, "exec", "-n", object.Namespace, pod, "-c", "nginx", "--", "nginx", "-T", "-c", "/etc/nginx-operator/nginx.conf")
	for _, line := range strings.Split(strings.TrimSpace(object.Spec.Nginx.Main+object.Spec.Nginx.Events), "\n") {
		if count := strings.Count(effective, line); count != 1 {
			t.Errorf("nginx's configuration has %q %d times", line, count)
		}
	}
	// A process can end between the shell's list and the read, so only the last command decides.
	const limit = `cat /proc/[0-9]*/limits 2>/dev/null | grep "open files"`
	limits := kubectl(t, "exec", "-n", object.Namespace, pod, "-c", "nginx", "--", "sh", "-c", limit)
	if !strings.Contains(limits, " 8192 ") {
		t.Errorf("no worker has the declared limit of open files: %s", limits)
	}

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Nginx.Events = "use kqueue;\n" })
	isDegraded(t, object, v1alpha2.ReasonRolledBack, `spec.nginx.events, line 1: invalid event type "kqueue"`)
	answers(t, object.Namespace, url, "tuned")
}

const hello = "function hello(r) { r.return(200, \"%s \" + r.uri + \"\\n\"); }\nexport default {hello};\n"

func testModules(t *testing.T) {
	object := newObject(newNamespace(t, restricted), "web", 1)
	scripts := newConfigMap(t, object.Namespace, "scripts", "hello.js", fmt.Sprintf(hello, "njs"))
	object.Spec.DrainSeconds = ptr.To(mutate.ShortDrain)
	object.Spec.Nginx = &v1alpha2.Nginx{Modules: []string{"ngx_http_js_module", "ngx_http_brotli_filter_module", "ngx_http_geoip2_module"}}
	object.Spec.Files = []v1alpha2.File{
		{Path: "scripts/hello.js", ConfigMapRef: &v1alpha2.FileReference{Name: "scripts", Key: "hello.js"}},
	}
	object.Spec.Config = &v1alpha2.Config{Inline: `js_import main from /etc/nginx/files/scripts/hello.js;
brotli on;
brotli_min_length 1;
brotli_types text/plain;
geoip2_proxy_recursive on;
server {
    listen 8080;
    default_type text/plain;
    location /js/ { js_content main.hello; }
    location / { return 200 "a text that is long enough to be compressed, long enough to be compressed\n"; }
}
`}
	must(t, suite.admin.Create(t.Context(), object))
	waitForReady(t, object)
	url := suite.reach.service(object.Namespace, "web", 8080)
	answers(t, object.Namespace, url+"js/x", "njs /js/x")
	if encoding := encodingOf(t, url); encoding != "br" {
		t.Errorf("the response has the encoding %q", encoding)
	}

	script := func(text string) {
		update(t, scripts, func(c *corev1.ConfigMap) { c.Data["hello.js"] = text })
	}
	script("function hello(r) { return }}\n")
	isDegraded(t, object, v1alpha2.ReasonRolledBack, "SyntaxError")
	answers(t, object.Namespace, url+"js/x", "njs /js/x")
	script(fmt.Sprintf(hello, "again"))
	waitForRecovery(t, object)
	answers(t, object.Namespace, url+"js/x", "again /js/x")

	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Nginx.Modules = append(o.Spec.Nginx.Modules, "ngx_http_absent_module")
	})
	isDegraded(t, object, v1alpha2.ReasonRolledBack, "nginx refuses spec.nginx.modules: dlopen()")
	answers(t, object.Namespace, url+"js/x", "again /js/x")
}

// encodingOf returns the encoding of a response to a client that accepts brotli.
func encodingOf(t *testing.T, url string) string {
	t.Helper()
	client, err := suite.reach.client(false)
	must(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	must(t, err)
	request.Header.Set("Accept-Encoding", "br")
	response, err := client.Do(request)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	must(t, err)
	return response.Header.Get("Content-Encoding")
}
