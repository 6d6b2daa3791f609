package command

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/tree"
	"github.com/example/nginx-operator/internal/wellknown"
)

// evil is a text that a tenant writes. mark stays readable in every output.
const (
	mark = "MARK"
	evil = "\x1b[2J\x1b]0;title\a" + mark + "\u009b31m\u202e\u2066\u2028\u2029\u0085\r\x7f"
)

// hostileServer is an API server whose answers have a tenant's text in each possible field.
type hostileServer struct {
	objects map[string]any
}

const (
	core      = "/api/v1/namespaces/shop/"
	apps      = "/apis/apps/v1/namespaces/shop/"
	instances = "/apis/operator.example.com/v1alpha2/namespaces/shop/nginxoperators"
)

func newHostileServer() *hostileServer {
	object := func(apiVersion, kind, name string, fields map[string]any) map[string]any {
		out := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{
			"name": name, "namespace": "shop", "uid": "uid-" + name, "resourceVersion": "1", "generation": 1,
			"annotations": map[string]any{"note": evil}, "ownerReferences": []any{map[string]any{
				"apiVersion": "operator.example.com/v1alpha2", "kind": "NginxOperator", "name": "web", "uid": "uid-web", "controller": true,
			}},
		}}
		maps.Copy(out, fields)
		return out
	}
	spec := func(more string) map[string]any {
		return map[string]any{
			"env":        []any{map[string]any{"name": "A", "value": evil + more}},
			"monitoring": map[string]any{"enabled": true, "image": "a/b:1", "requestMetrics": map[string]any{}},
			"image":      "example.com/nginx:1", "config": map[string]any{"inline": "# " + evil + "\nserver { listen 8080; }\n"},
		}
	}
	stored := map[string]any{"change": evil, "spec": spec("before"), "children": []any{
		map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": evil}},
	}}
	raw, _ := json.Marshal(stored) //nolint:errchkjson // it has only maps and texts
	sum := sha256.Sum256(raw)
	status := func(ready, degraded string) map[string]any {
		condition := func(kind, status string) any {
			return map[string]any{
				"type": kind, "status": status, "reason": evil, "message": evil + "\n" + evil, "observedGeneration": 1,
				"lastTransitionTime": "2026-03-04T05:06:07Z",
			}
		}
		revision := map[string]any{"revision": "web-1", "image": evil, "time": "2026-03-04T05:06:07Z"}
		failed := map[string]any{"revision": evil, "reason": evil, "message": evil, "time": "2026-03-04T05:06:07Z"}
		related := []any{
			map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
			map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "web"},
			map[string]any{"apiVersion": "v1", "kind": "Service", "name": "web"},
		}
		return map[string]any{
			"observedGeneration": 1, "conditions": []any{condition("Ready", ready), condition("Degraded", degraded)},
			"image": evil, "url": evil, "relatedObjects": related, "lastGoodRevision": revision, "failedRevisions": []any{failed},
			"blockedBy": []any{map[string]any{"reason": evil, "message": evil}}, "addresses": []any{map[string]any{"type": evil, "value": evil}},
			"certificates": []any{map[string]any{
				"secretName": evil, "notAfter": "2026-03-04T05:06:07Z", "dnsNames": []any{evil}, "issuer": evil,
			}},
			"patchedKinds": []any{evil}, "storedRevision": map[string]any{"name": "web-1", "hash": hex.EncodeToString(sum[:])},
		}
	}
	instance := func(name, ready, degraded string, paused bool) map[string]any {
		out := object("operator.example.com/v1alpha2", "NginxOperator", name, map[string]any{"spec": spec(""), "status": status(ready, degraded)})
		if paused {
			out["spec"].(map[string]any)["paused"] = true
		}
		return out
	}
	exporter := map[string]any{"name": wellknown.ExporterContainer, "image": evil, "ports": []any{map[string]any{"containerPort": 9114}}}
	running := map[string]any{"name": wellknown.ExporterContainer, "state": map[string]any{"running": map[string]any{}}}
	receiver, counting := maps.Clone(exporter), maps.Clone(running)
	receiver["name"], counting["name"] = wellknown.RequestMetricsContainer, wellknown.RequestMetricsContainer
	template := map[string]any{
		"nodeName": evil, "initContainers": []any{exporter, receiver}, "containers": []any{map[string]any{"name": "nginx", "image": evil}},
		"volumes": []any{map[string]any{"name": "config", "configMap": map[string]any{"name": "web-1"}}},
	}
	out := map[string]any{
		instances + "/web":    instance("web", "True", "False", false),
		instances + "/paused": instance("paused", "True", "False", true),
		instances + "/failed": instance("failed", "False", "True", false),
		core + "pods/web-a": object("v1", "Pod", "web-a", map[string]any{"spec": template, "status": map[string]any{
			"phase": "Running", "reason": evil, "initContainerStatuses": []any{running, counting},
		}}),
		core + "configmaps/web-1": object("v1", "ConfigMap", "web-1", map[string]any{"data": map[string]any{"nginx.conf": "\t" + evil + "\n"}}),
		core + "configmaps/pages": object("v1", "ConfigMap", "pages", map[string]any{"data": map[string]any{"index.html": evil}}),
		apps + "deployments/web": object("apps/v1", "Deployment", "web", map[string]any{
			"spec": map[string]any{"replicas": 1, "template": map[string]any{"spec": template}},
		}),
		apps + "controllerrevisions/web-1": object("apps/v1", "ControllerRevision", "web-1", map[string]any{
			"revision": 1, "data": stored,
		}),
		"/apis/networking.k8s.io/v1/namespaces/shop/ingresses/web": object("networking.k8s.io/v1", "Ingress", "web", map[string]any{
			"spec": map[string]any{"rules": []any{map[string]any{"host": evil}}},
		}),
		"/version": map[string]any{"major": "1", "minor": "35"},
		"/api":     map[string]any{"kind": "APIVersions", "versions": []any{"v1"}},
		"/apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{
			group("apps", "v1"), group("operator.example.com", "v1alpha2"), group("networking.k8s.io", "v1"), group("policy", "v1"),
			group("autoscaling", "v2"),
		}},
		"/api/v1": resources("v1", "configmaps:ConfigMap", "pods:Pod", "secrets:Secret", "services:Service"),
		"/apis/apps/v1": resources(
			"apps/v1", "deployments:Deployment", "controllerrevisions:ControllerRevision", "replicasets:ReplicaSet",
		),
		"/apis/networking.k8s.io/v1":          resources("networking.k8s.io/v1", "ingresses:Ingress", "networkpolicies:NetworkPolicy"),
		"/apis/policy/v1":                     resources("policy/v1", "poddisruptionbudgets:PodDisruptionBudget"),
		"/apis/autoscaling/v2":                resources("autoscaling/v2", "horizontalpodautoscalers:HorizontalPodAutoscaler"),
		"/apis/operator.example.com/v1alpha2": resources("operator.example.com/v1alpha2", "nginxoperators:NginxOperator"),
	}
	return &hostileServer{out}
}

func group(name, version string) any {
	one := map[string]any{"groupVersion": name + "/" + version, "version": version}
	return map[string]any{"name": name, "versions": []any{one}, "preferredVersion": one}
}

// resources returns the discovery document of an API group. Each kind has the form plural:Kind.
func resources(groupVersion string, kinds ...string) any {
	var out []any
	for _, one := range kinds {
		name, kind, _ := strings.Cut(one, ":")
		verbs := []any{"create", "delete", "get", "list", "patch", "update"}
		out = append(out, map[string]any{"name": name, "kind": kind, "namespaced": true, "verbs": verbs})
	}
	return map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": groupVersion, "resources": out}
}

// ServeHTTP implements http.Handler. Each answer contains text of the tenant.
func (s *hostileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Warning", "299 - \"\u202ewarning\u2028\"")
	code, answer := s.answer(r)
	if text, isText := answer.(string); isText {
		_, _ = io.WriteString(w, text)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *hostileServer) answer(r *http.Request) (int, any) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	object, found := s.objects[r.URL.Path]
	switch {
	case strings.HasSuffix(r.URL.Path, "/log"):
		return http.StatusOK, evil + "\n\tGET / \x9b\x00\n" + evil
	case strings.HasSuffix(r.URL.Path, "/metrics"):
		return http.StatusOK, metrics + strings.ReplaceAll(requestMetrics, "shop.example.com", evil)
	case found && r.Method == http.MethodPatch:
		raw, _ := json.Marshal(object)
		patched, err := jsonpatch.MergePatch(raw, body)
		if err != nil {
			break
		}
		return http.StatusOK, json.RawMessage(patched)
	case found && r.Method == http.MethodGet:
		return http.StatusOK, object
	case r.Method == http.MethodPost, r.Method == http.MethodPut:
		written, gvk, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil) // protobuf
		if err != nil {
			return http.StatusOK, json.RawMessage(body)
		}
		written.GetObjectKind().SetGroupVersionKind(*gvk)
		written.(metav1.Object).SetUID("created")
		return http.StatusOK, written
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "s") && strings.Contains(r.URL.Path, "/namespaces/shop/"):
		items := []any{}
		for path, one := range s.objects {
			if strings.HasPrefix(path, r.URL.Path+"/") {
				items = append(items, one)
			}
		}
		return http.StatusOK, map[string]any{"items": items}
	}
	reason, code := "NotFound", http.StatusNotFound
	if strings.HasSuffix(r.URL.Path, "/refused") {
		reason, code = "Forbidden", http.StatusForbidden
	}
	return code, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": evil,
	}
}

// hostileRun runs a command against a hostileServer.
func hostileRun(t *testing.T, url, stdin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	streams, in, stdout, stderr := genericclioptions.NewTestIOStreams()
	in.WriteString(stdin)
	args = append(args, "--server", url, "--namespace", "shop", "--cache-dir", t.TempDir())
	code = Run(t.Context(), args, streams, "")
	return code, stdout.String(), stderr.String()
}

// hostileManifest is a manifest for plan.
var hostileManifest = func() string {
	server, out := newHostileServer(), ""
	for _, path := range []string{instances + "/web", core + "configmaps/pages"} {
		raw, _ := json.Marshal(server.objects[path])
		planned := &unstructured.Unstructured{}
		_ = planned.UnmarshalJSON(raw)
		for _, field := range []string{"uid", "resourceVersion", "generation", "ownerReferences"} {
			unstructured.RemoveNestedField(planned.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(planned.Object, "status")
		planned.SetAnnotations(map[string]string{"note": evil + evil})
		raw, _ = printer.JSON(planned.Object)
		out += string(raw) + "---\n"
	}
	return out
}()

// hostileDeployment is a manifest for migrate.
var hostileDeployment = strings.ReplaceAll(`{
"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": {"spec": {
"containers": [{"name": "nginx", "image": "a", "env": [{"name": "A", "value": "EVIL"}], "EVIL": 1}]}}}}`,
	"EVIL", `\u001b[2J\u007f\u0085\u202e`+mark)

// hostileConfiguration is a file for migrate.
const hostileConfiguration = "user '" + evil + "'; http { include '" + evil + "'; server { listen 80; root '" + evil + "'; } }"

// TestHostileContent verifies that no command prints a control character that a terminal
// interprets. It fails if a command has no case.
func TestHostileContent(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	server := httptest.NewServer(newHostileServer())
	defer server.Close()
	files := map[string]string{"web": hostileManifest, "deployment": hostileDeployment, "text": evil, "nginx": hostileConfiguration}
	for name, content := range files {
		files[name] = filepath.Join(t.TempDir(), name+".json")
		if err := os.WriteFile(files[name], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	tried := map[string]bool{}
	for _, test := range []struct {
		command, stdin string
		code           int
		// silent is true if the command prints no text of the tenant.
		silent bool
	}{
		{command: "status"},
		{command: "status web"},
		{command: "status web -o json"},
		{command: "status web -o yaml"},
		{command: "status -o yaml"},
		{command: "status refused", code: exitError},
		{command: "plan -f " + files["web"], code: exitDifferences},
		{command: "plan -o json -f " + files["web"], code: exitDifferences},
		{command: "plan -o yaml -f " + files["web"], code: exitDifferences},
		{command: "plan --server-side -f " + files["web"], code: exitDifferences},
		{command: "logs web"},
		{command: "config web"},
		{command: "config web --diff", code: exitDifferences},
		{command: "top web", silent: true},
		{command: "top web --servers"},
		{command: "top -o yaml", silent: true},
		{command: "restart web --wait"},
		{command: "restart failed --wait", code: exitError},
		{command: "rollback web", stdin: "n\n", code: exitError},
		{command: "rollback web --yes --wait"},
		{command: "pause web", silent: true},
		{command: "pause refused", code: exitError},
		{command: "resume paused --wait"},
		{command: "migrate -f " + files["deployment"]},
		{command: "migrate -f " + files["text"], code: exitError, silent: true},
		{command: "migrate -f " + files["nginx"]},
		{command: "migrate -f -", stdin: hostileConfiguration},
		{command: "migrate -f -", stdin: hostileDeployment},
		{command: "migrate -f -", stdin: strings.TrimSuffix(hostileConfiguration, "}"), code: exitError, silent: true},
		{command: "migrate -f -", stdin: "server { \"" + evil + "\"x", code: exitError, silent: true},
		{command: "no-such-" + evil, code: exitError},
	} {
		t.Run(test.command, func(t *testing.T) {
			code, out, errOut := hostileRun(t, server.URL, test.stdin, strings.Split(test.command, " ")...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, text := range []string{out, errOut} {
				at := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' })
				if at >= 0 || !utf8.ValidString(text) {
					t.Errorf("byte %d is not printable in %q", at, text)
				}
			}
			if strings.HasPrefix(test.command, "status web -o") { // a decoded structure has the text unchanged
				var report tree.Report
				err := yaml.Unmarshal([]byte(out), &report)
				if err != nil || report.Message != evil+"\n"+evil || report.URL != evil {
					t.Errorf("read (%v) %q and %q", err, report.Message, report.URL)
				}
			}
			if strings.Contains(out+errOut, mark) == test.silent {
				t.Errorf("the tenant's text is part of the output: %t", !test.silent)
			}
			if t.Failed() {
				t.Logf("output: %q\nerrors: %q", out, errOut)
			}
		})
		tried[strings.Fields(test.command)[0]] = true
	}
	for _, command := range newRoot(&cli{kube: genericclioptions.NewConfigFlags(true)}).Commands() {
		if !tried[command.Name()] {
			t.Errorf("no case for %s", command.Name())
		}
	}
}
