package e2e

// An operator that watches some namespaces, installed with the overlay of
// docs/guide/operations/watch-namespaces.md. The integration test of the same name compares its permissions.
//
//   - An instance of the watched namespace becomes Ready and serves.
//   - An object of another namespace is converted, and otherwise left alone.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/test/harness"
)

func TestWatchNamespaces(t *testing.T) {
	startInDefault(t)
	watched, foreign := newNamespace(t, restricted), newNamespace(t, restricted)
	kubectl(t, "apply", "--server-side", "-k", watchOverlay(t, watched))
	waitForOperator(t)

	stray := newObject(foreign, "web", 1)
	must(t, suite.admin.Create(t.Context(), stray))
	object := newInstance(t, watched, "web", 1)
	serviceServes(t, watched, "web", 8080)
	// The operator has reconciled a later change by then.
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = new(int32) })
	waitForReady(t, object)

	port := kubectl(t, "get", "-n", foreign, "nginxoperators.v1alpha1.operator.example.com", "web", "-o", "jsonpath={.spec.port}")
	if port != "8080" {
		t.Errorf("the object elsewhere has port %q at v1alpha1", port)
	}
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(stray), stray))
	children, err := childrenOf(t.Context(), stray)
	must(t, err)
	if stray.Status.ObservedGeneration != 0 || len(stray.Status.Conditions) > 0 || len(children) > 0 {
		t.Errorf("the object elsewhere has children %v and status %+v", children, stray.Status)
	}
}

// watchOverlay writes the guide's overlay for a namespace and returns its directory.
func watchOverlay(t *testing.T, namespace string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(suite.repository, "docs/guide/operations/watch-namespaces.md"))
	must(t, err)
	directory := harness.Must1(filepath.EvalSymlinks(t.TempDir()))(t)
	delivery := harness.Must1(filepath.Abs(suite.delivery))(t)
	text := strings.ReplaceAll(string(page), "team-a", namespace)
	must(t, docs.WriteOverlay(text, "Create an overlay", directory, delivery))
	return directory
}
