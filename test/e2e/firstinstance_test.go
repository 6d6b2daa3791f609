package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/example/nginx-operator/test/harness"
)

// testFirstInstance runs the page on a first instance. Its user has only the roles of the page: the
// editor role of the operator, and in the last sections the role edit. The page of the instance is
// requested from elsewhere in the cluster.
func testFirstInstance(t *testing.T) {
	const namespace, roles, edit = "bakery", "Get a namespace and the editor role", "Continue with the role edit"
	began := time.Now()
	j := newPage(t, "guide", "first-instance", namespace)
	kubeconfig := filepath.Join(j.dir, "jane.kubeconfig")
	must(t, harness.WriteKubeconfigAs("jane", "", kubeconfig))
	asJane := "export KUBECONFIG=" + kubeconfig
	url := suite.reach.service(namespace, "hello", 8080)

	j.through(t, roles)
	j.before = asJane
	j.through(t, "Create the instance")
	answers(t, namespace, url, "Hello from the bakery")
	j.through(t, "Change the instance")
	answers(t, namespace, url, "Fresh bread")

	j.before = ""
	j.first(t, edit)
	j.before = asJane
	j.through(t, edit)
	answers(t, namespace, url, "<h1>Fresh bread</h1>")
	j.through(t, "")
	j.done(t, began)
}
