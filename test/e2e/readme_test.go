package e2e

// The README's section "Try it". The test runs exactly its commands in an empty directory, in a
// namespace that enforces Pod Security, on a cluster without the operator. The commands install the
// operator from install.yaml, as testInstalled requires it.

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
	serveRelease(t)
	startInDefault(t)
	text, err := os.ReadFile(filepath.Join(suite.repository, "README.md"))
	must(t, err)
	script, answer, err := docs.TryIt(string(text))
	must(t, err)
	namespace := newNamespace(t, restricted)
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
	testInstalled(t, "install.yaml", namespace)
}
