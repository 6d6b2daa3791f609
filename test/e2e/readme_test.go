package e2e

// The README's section "Try it". The test runs exactly its commands in an empty directory, in a
// namespace that enforces Pod Security, on a cluster without the operator. The commands install the
// operator, so the test is not part of a group.

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/example/nginx-operator/docs"
)

// tryItSetup lets the commands run in a namespace of the test, as the current namespace of a user
// with a kubeconfig. The trap stops the background processes of the commands.
const tryItSetup = `cd "$1"
kubectl config view --raw >kubeconfig
export KUBECONFIG=$PWD/kubeconfig
kubectl config set-context --current --namespace="$2" >/dev/null
trap 'kill $(jobs -p)' EXIT
`

func TestReadme(t *testing.T) {
	startClean(t)
	text, err := os.ReadFile(filepath.Join(suite.repository, "README.md"))
	must(t, err)
	script, answer, err := docs.TryIt(string(text))
	must(t, err)
	serveRelease(t)
	namespace := newNamespace(t, "restricted")
	suite.operatorNamespace = defaultNamespace
	t.Cleanup(func() { removeTryIt(t, namespace) })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	began := time.Now()
	out, err := command(ctx, "bash", "-euo", "pipefail", "-c", tryItSetup+script, "bash", t.TempDir(), namespace)
	if err != nil {
		fatal(t, namespace, "%v", err)
	}
	if !strings.HasSuffix(out, answer) {
		fatal(t, namespace, "the last line answers something else than %q:\n%s", answer, out)
	}
	t.Logf("FIGURE the README's lines, from nothing to the answer: %s", seconds(time.Since(began)))
}

// removeTryIt deletes everything that the commands created, without waiting for Pods that drain.
func removeTryIt(t *testing.T, namespace string) {
	t.Helper()
	defer func() { suite.operatorNamespace = "" }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), installPatience)
	defer cancel()
	for _, made := range []struct {
		namespace string
		what      []string
	}{
		{namespace, []string{"namespace", namespace}},
		{defaultNamespace, []string{"-f", filepath.Join(suite.repository, "dist", "release", "install.yaml")}},
	} {
		err := deleteNamespace(ctx, made.namespace)
		if err == nil {
			_, err = command(ctx, "kubectl", append([]string{"delete", "--ignore-not-found", "--wait"}, made.what...)...)
		}
		if err != nil {
			t.Error(err)
		}
	}
}
