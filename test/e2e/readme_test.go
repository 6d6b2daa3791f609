package e2e

// The README's section "Try it". The test runs exactly its commands in the directory of the
// release, on a cluster without the operator. The commands install the operator, so the test is not
// part of a group.

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/example/nginx-operator/docs"
)

// tryItNamespace is the namespace that the section creates.
const tryItNamespace = "hello"

func TestReadme(t *testing.T) {
	startClean(t)
	text, err := os.ReadFile(filepath.Join(suite.repository, "README.md"))
	must(t, err)
	script, answer, err := docs.TryIt(string(text))
	must(t, err)
	suite.operatorNamespace = defaultNamespace
	t.Cleanup(func() { removeTryIt(t) })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	began := time.Now()
	// The trap stops the background processes of the commands.
	lines := "cd '" + suite.delivery + "'\ntrap 'kill $(jobs -p)' EXIT\n" + script
	out, err := command(ctx, "bash", "-euo", "pipefail", "-c", lines)
	if err != nil {
		fatal(t, tryItNamespace, "%v", err)
	}
	if !strings.HasSuffix(out, answer) {
		fatal(t, tryItNamespace, "the last line answers something else than %q:\n%s", answer, out)
	}
	t.Logf("FIGURE the README's lines, from nothing to the answer: %s", seconds(time.Since(began)))
}

// removeTryIt deletes everything that the commands created, without waiting for Pods that drain.
func removeTryIt(t *testing.T) {
	t.Helper()
	defer func() { suite.operatorNamespace = "" }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), installPatience)
	defer cancel()
	for _, made := range []struct {
		namespace string
		what      []string
	}{
		{tryItNamespace, []string{"namespace", tryItNamespace}},
		{defaultNamespace, []string{"-k", filepath.Join(suite.delivery, "config", "default")}},
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
