package harness

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"syscall"
)

// ControllerManager is a running kube-controller-manager that migrates stored objects. It has no
// other effect that a test would notice.
type ControllerManager struct{ *Process }

// StartControllerManager starts a kube-controller-manager with the RBAC permissions of a kubeconfig
// and waits until it is healthy. It knows existing kinds immediately, and kinds that are added
// later after up to 30 s. Its log and certificates are in dir. Stop ends it.
func StartControllerManager(ctx context.Context, binary, kubeconfig, dir string) (*ControllerManager, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("failed to choose a port: %w", err)
	}
	cmd := exec.Command(binary, //nolint:gosec // the binary is the project's own
		"--bind-address="+host, "--secure-port="+port, "--cert-dir="+dir,
		"--kubeconfig="+kubeconfig, "--leader-elect=false",
		// The migrator gets the list of objects from the garbage collector.
		"--controllers=storage-version-migrator-controller,garbage-collector-controller",
		// Same limits as in the cluster of the end-to-end tests.
		"--kube-api-qps=200", "--kube-api-burst=400",
		// Log why a migration is retried.
		"--vmodule=storageversionmigrator=2,resourceversion=2",
	)
	process, err := startProcess(cmd, dir, "kube-controller-manager")
	if err != nil {
		return nil, err
	}
	m := &ControllerManager{process}
	if err := m.awaitOK(ctx, "https://"+address+"/healthz"); err != nil {
		m.Stop()
		return nil, fmt.Errorf("the kube-controller-manager is not healthy: %w", err)
	}
	return m, nil
}

// Stop sends SIGTERM and returns when the process has ended.
func (m *ControllerManager) Stop() { m.end(syscall.SIGTERM) }
