package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
)

// TestMessage verifies that errors have the form of kubectl's errors.
func TestMessage(t *testing.T) {
	notInstalled := &meta.NoKindMatchError{
		GroupKind: schema.GroupKind{Group: "operator.example.com", Kind: "NginxOperator"}, SearchedVersions: []string{"v1alpha2"},
	}
	gone := apierrors.NewNotFound(schema.GroupResource{Group: "operator.example.com", Resource: "nginxoperators"}, "web")
	for want, err := range map[string]error{
		`Error from server (NotFound): nginxoperators.operator.example.com "web" not found`: gone,
		`Error from server (NotFound): failed to read: nginxoperators.operator.example.com "web" not found`: fmt.Errorf(
			"failed to read: %w", gone),
		`Unable to connect to the server: connection refused`: &url.Error{
			Op: "Get", URL: "https://a", Err: errors.New("connection refused"),
		},
		`error: no matches for kind "NginxOperator" in version "operator.example.com/v1alpha2". ` +
			`Install nginx-operator, or select another cluster with --context`: notInstalled,
		`error: must specify -f FILENAME`: errors.New("must specify -f FILENAME"),
	} {
		if got := message(err); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestBadArguments verifies that invalid arguments are rejected without a request to the cluster
// and without the usage, with the exit code of kubectl or kubectl diff.
func TestBadArguments(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for arguments, want := range map[string]string{
		"status -o table":            `error: unable to match a printer suitable for the output format "table", allowed formats are: json,yaml`,
		"top a -A":                   "error: a resource cannot be retrieved by name with --all-namespaces or --selector",
		"top --interval=0s":          "error: --interval is 0s, must be between 1s and 1m",
		"status a -A":                "error: a resource cannot be retrieved by name with --all-namespaces or --selector",
		"plan":                       "error: must specify -f FILENAME",
		"plan --no-such-flag":        "error: unknown flag: --no-such-flag",
		"migrate":                    "error: must specify -f FILENAME",
		"migrate -f no-such-file":    `error: the path "no-such-file" does not exist`,
		"logs":                       "error: exactly one NAME is required, got 0. For help, run: kubectl nginx logs --help",
		"config a b":                 "error: exactly one NAME is required, got 2. For help, run: kubectl nginx config --help",
		"restart web --no-such-flag": "error: unknown flag: --no-such-flag",
		"no-such-command":            `error: unknown command "no-such-command" for "kubectl nginx"`,
	} {
		streams, _, out, errOut := genericclioptions.NewTestIOStreams()
		code, wantCode := Run(t.Context(), strings.Fields(arguments), streams, "1.2.3"), 1
		if strings.HasPrefix(arguments, "plan") || strings.HasPrefix(arguments, "config") {
			wantCode = 2
		}
		if got := strings.TrimSpace(errOut.String()); code != wantCode || got != want || out.Len() > 0 {
			t.Errorf("%s: code %d, want %d; error %q, want %q; output %q", arguments, code, wantCode, got, want, out)
		}
	}
}

// TestVersionAndCompletion verifies that the program prints its version, and completes arguments.
func TestVersionAndCompletion(t *testing.T) {
	for arguments, want := range map[string]string{
		"--version": "kubectl nginx version 1.2.3\n", "__complete sta": "status\t", "__complete status -o ": "json\nyaml\n",
	} {
		streams, _, out, _ := genericclioptions.NewTestIOStreams()
		code := Run(t.Context(), strings.Split(arguments, " "), streams, "1.2.3")
		if code != 0 || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: code %d, output %q, want %q", arguments, code, out, want)
		}
	}
}

// TestMigrateAsksNoCluster verifies that migrate converts a file without a request to the cluster.
func TestMigrateAsksNoCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	file := filepath.Join(t.TempDir(), "nginx.yaml")
	const manifest = "apiVersion: nginx.tsuru.io/v1alpha1\nkind: Nginx\nmetadata: {name: a}\n"
	if err := os.WriteFile(file, []byte(manifest+"---\n"+manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	streams, _, out, errOut := genericclioptions.NewTestIOStreams()
	if code := Run(t.Context(), []string{"migrate", "-f", file}, streams, ""); code != 0 {
		t.Fatalf("code %d: %s", code, errOut)
	}
	documents := strings.Split(out.String(), "---\n")
	if len(documents) != 2 || documents[0] != documents[1] || !strings.HasPrefix(documents[0], "# Replaces Nginx a.") {
		t.Errorf("no two documents:\n%s", out)
	}
	if code := Run(t.Context(), []string{"migrate", "-f", file, "--name", "b"}, streams, ""); code != exitError {
		t.Errorf("one name for two workloads: code %d", code)
	}
}

// TestMigrateReadsStreams verifies that migrate reads manifests and a configuration from standard
// input, and from a named pipe, which can be read only once.
func TestMigrateReadsStreams(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for text, want := range map[string]string{
		"# a\nserver { listen 80; }\n":                                            "name: nginx-web\n",
		"apiVersion: nginx.tsuru.io/v1alpha1\nkind: Nginx\nmetadata: {name: a}\n": "name: a-web\n",
	} {
		pipe := filepath.Join(t.TempDir(), "nginx.conf")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"-", pipe} {
			streams, in, out, errOut := genericclioptions.NewTestIOStreams()
			if file == pipe {
				go func() { _ = os.WriteFile(pipe, []byte(text), 0o600) }()
			} else {
				in.WriteString(text)
			}
			if code := Run(t.Context(), []string{"migrate", "-f", file}, streams, ""); code != 0 || !strings.Contains(out.String(), want) {
				t.Errorf("%s: code %d, want %q in %q; error %q", file, code, want, out, errOut)
			}
		}
	}
}

// TestCopyLines verifies that each line has the prefix. One that exceeds the buffer is split.
func TestCopyLines(t *testing.T) {
	var out bytes.Buffer
	long := strings.Repeat("x", maxLine+1)
	if err := copyLines(&out, io.NopCloser(strings.NewReader("one\n"+long+"\nlast")), "[a] "); err != nil {
		t.Fatal(err)
	}
	want := "[a] one\n[a] " + long[:maxLine] + "\n[a] x\n[a] last\n"
	if out.String() != want {
		t.Errorf("got %d bytes, want %d", out.Len(), len(want))
	}
	failing := io.NopCloser(io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(context.Canceled)))
	if err := copyLines(&out, failing, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("a stream that breaks is no error: %v", err)
	}
}

// TestLogOptions verifies that the flags of logs have the meaning of kubectl's.
func TestLogOptions(t *testing.T) {
	for _, test := range []struct {
		flags logFlags
		want  corev1.PodLogOptions
	}{
		{logFlags{tail: -1, container: "nginx"}, corev1.PodLogOptions{Container: "nginx"}},
		{
			logFlags{tail: 0, since: 300 * time.Millisecond, follow: true, timestamps: true, previous: true},
			corev1.PodLogOptions{TailLines: ptr.To[int64](0), SinceSeconds: ptr.To[int64](1), Follow: true, Timestamps: true, Previous: true},
		},
	} {
		if diff := cmp.Diff(&test.want, test.flags.options()); diff != "" {
			t.Error(diff)
		}
	}
}
