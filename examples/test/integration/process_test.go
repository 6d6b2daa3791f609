package integration

import (
	"testing"

	"github.com/example/nginx-operator/test/harness"
)

// startOperator starts the manager and waits until it is ready. It elects nobody: after a kill the next one begins at once.
func startOperator() (*harness.Manager, error) {
	return harness.StartManager(harness.ManagerOptions{
		Binary: suite.binary, Kubeconfig: suite.kubeconfig, Namespace: operatorNamespace, Dir: suite.dir, Service: suite.service,
		Env: []string{"POD_NAMESPACE=" + operatorNamespace},
	})
}

// restart starts the manager that all tests share anew.
func restart(t *testing.T) {
	t.Helper()
	next, err := startOperator()
	must(t, err)
	suite.operator = next
}
