package command

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/golden"
)

var update = flag.Bool("update", false, "write the golden files")

// wantGolden compares a text with a golden file in testdata.
func wantGolden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file) //nolint:gosec // of this test
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestMessages verifies that a golden file has each message of this package.
func TestMessages(t *testing.T) {
	golden.Messages(t, map[string]string{
		"there are differences":                       "is never printed: it selects the exit code",
		"failed to read the log of Pod …: …":          "needs a stream that breaks, see TestCopyLines",
		"the NginxOperator was deleted while waiting": "needs another object under the same name during the wait",
		"Error from server: …":                        "needs an answer without a reason",
		"with --diff, if the spec references them":    "the help wraps it",
		"the operator renders no configuration for NginxOperator … (a defect): please report it": "cannot happen without a defect",
		"failed to read …: …":                   "needs a file that breaks while it is read",
		"the state of the child objects":        "the help wraps it",
		"defaults and errors of the API server": "the help wraps it",
	}, "testdata/help.txt", "testdata/errors.txt")
}

// TestHelp compares the help of each command with a golden file.
func TestHelp(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", "/home/user") // the default of --cache-dir
	var text strings.Builder
	root := newRoot(&cli{kube: genericclioptions.NewConfigFlags(true)})
	for _, cmd := range append(root.Commands(), root) {
		args := strings.Fields(strings.TrimPrefix(cmd.CommandPath(), root.CommandPath()))
		streams, _, out, _ := genericclioptions.NewTestIOStreams()
		if code := Run(t.Context(), append(args, "--help"), streams, "1.2.3"); code != 0 {
			t.Errorf("%s: exit code %d", cmd.CommandPath(), code)
		}
		help, _, _ := strings.Cut(out.String(), "\nGlobal Flags:") // those of kubectl
		if cmd == root {
			help, _, _ = strings.Cut(help, "\nFlags:")
		}
		fmt.Fprintf(&text, "$ %s --help\n%s\n", cmd.CommandPath(), strings.TrimRight(help, "\n")+"\n")
	}
	wantGolden(t, "help.txt", text.String())
}

// TestErrors compares the messages of commands, most of which fail, with a golden file.
func TestErrors(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	server := httptest.NewServer(newPlainServer(t))
	defer server.Close()
	withoutOperator := newPlainServer(t)
	withoutOperator.objects["/apis"] = map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}}
	other := httptest.NewServer(withoutOperator)
	defer other.Close()

	var text strings.Builder
	run := func(url, stdin, command string) {
		code, out, errOut := hostileRun(t, url, stdin, strings.Fields(command)...)
		if lines := strings.SplitAfter(out, "\n"); len(lines) > 24 {
			out = strings.Join(lines[:24], "") + "...\n"
		}
		fmt.Fprintf(&text, "$ kubectl nginx %s\n%s%s(exit code %d)\n\n", command, out, errOut, code)
	}
	for _, command := range []string{
		"no-such-command", "status -o table", "status web -A", "status none", "status -l a=b", "plan", "logs", "logs new", "logs many -f",
		"config new", "config blocked --diff", "config web", "config web --diff", "top --interval=0s", "top new", "top idle", "top -l a=b",
		"top web", "top --servers", "top new --servers", "top web --servers",
		"restart paused", "restart failed --wait", "restart new --wait --timeout=1s", "pause paused", "pause web", "resume web",
		"resume paused --wait", "rollback new", "rollback steady", "rollback broken", "rollback web --dry-run", "rollback web",
		"rollback web --yes", "migrate -f ../migrate/testdata/low-port.conf", "migrate -f ../migrate/testdata/nginx.conf -f testdata/help.txt",
		"migrate -f testdata/text.conf",
	} {
		run(server.URL, "n\n", command)
	}
	text.WriteString("In a cluster without the operator:\n\n")
	run(other.URL, "", "status web")
	text.WriteString("Without a connection:\n\n")
	run("http://127.0.0.1:1", "", "status web")
	wantGolden(t, "errors.txt", text.String())
}

// plainServer is an API server with the objects of a hostileServer, without the tenant's text, and
// with more instances.
type plainServer struct{ *hostileServer }

func newPlainServer(t *testing.T) plainServer {
	t.Helper()
	server := newHostileServer()
	hostile, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	for path, object := range server.objects {
		server.objects[path] = plain(t, object, strings.Trim(string(hostile), `"`))
	}

	stored := func(name string, change func(data map[string]any)) map[string]any {
		record := plain(t, server.objects[apps+"controllerrevisions/web-1"], evil).(map[string]any)
		change(record["data"].(map[string]any))
		server.objects[apps+"controllerrevisions/"+name] = record
		raw, _ := json.Marshal(record["data"]) //nolint:errchkjson // decoded before
		sum := sha256.Sum256(raw)
		return map[string]any{"name": name, "hash": hex.EncodeToString(sum[:])}
	}
	pages := map[string]any{"configMapRef": map[string]any{"name": "pages"}}
	good := stored("web-1", func(data map[string]any) { data["spec"].(map[string]any)["content"] = pages })
	empty := stored("web-2", func(data map[string]any) { delete(data, "spec") })

	for name, change := range map[string]func(spec, status map[string]any){
		"web":    func(_, status map[string]any) { status["storedRevision"] = good },
		"broken": func(_, status map[string]any) { status["storedRevision"] = empty },
		"steady": func(_, status map[string]any) { delete(status, "storedRevision") },
		"blocked": func(spec, _ map[string]any) {
			spec["content"] = map[string]any{"configMapRef": map[string]any{"name": "none"}}
		},
		"idle": func(_, _ map[string]any) {},
		"many": func(_, _ map[string]any) {},
		"new": func(spec, status map[string]any) {
			delete(spec, "monitoring")
			clear(status)
		},
	} {
		object := plain(t, server.objects[instances+"/web"], evil).(map[string]any)
		object["metadata"].(map[string]any)["name"] = name
		change(object["spec"].(map[string]any), object["status"].(map[string]any))
		server.objects[instances+"/"+name] = object
	}
	return plainServer{server}
}

// ServeHTTP implements http.Handler.
func (s plainServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code, answer := http.StatusOK, any(nil)
	pod := s.objects[core+"pods/web-a"]
	switch selector := r.URL.Query().Get("labelSelector"); {
	case selector == "a=b":
		answer = map[string]any{"items": []any{}}
	case r.URL.Path == core+"pods" && (strings.Contains(selector, "instance=web") || strings.Contains(selector, "instance=blocked")):
		answer = map[string]any{"items": []any{pod}}
	case r.URL.Path == core+"pods" && strings.Contains(selector, "instance=many"):
		answer = map[string]any{"items": slices.Repeat([]any{pod}, maxFollowed+1)}
	case r.URL.Path == core+"pods":
		answer = map[string]any{"items": []any{}}
	case strings.HasSuffix(r.URL.Path, "/metrics"):
		_, _ = io.WriteString(w, strings.Replace(metrics, "nginx_up 1", "nginx_up 0", 1))
		return
	default:
		if code, answer = s.answer(r); code == http.StatusNotFound {
			missing := apierrors.NewNotFound(v1alpha2.GroupVersion.WithResource("nginxoperators").GroupResource(), path.Base(r.URL.Path))
			missing.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			answer = missing.ErrStatus
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

// plain returns a copy of a JSON value, with plain text instead of a tenant's.
func plain(t *testing.T, value any, hostile string) any {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(raw), hostile, "text")), &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}
