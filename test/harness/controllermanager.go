package harness

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"syscall"
)

// ControllerManager is a running kube-controller-manager that migrates stored objects and does nothing else that a test
// would notice.
type ControllerManager struct{ *Process }

// StartControllerManager starts a kube-controller-manager with the RBAC permissions of a kubeconfig and waits until it is healthy.
// It knows the kinds that exist by then at once, later ones only after up to 30 s. Its files are in the directory. It ends
// with Stop.
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
		// The migrator takes the list of objects from the garbage collector.
		"--controllers=storage-version-migrator-controller,garbage-collector-controller",
		// As the cluster of the end-to-end tests has it.
		"--kube-api-qps=200", "--kube-api-burst=400",
		// Why a migration is tried again.
		"--vmodule=storageversionmigrator=2,resourceversion=2",
	)
	process, err := startProcess(cmd, dir, "kube-controller-manager")
	if err != nil {
		return nil, err
	}
	m := &ControllerManager{process}
	if err := m.awaitOK(ctx, "https://"+address+"/healthz", startPatience); err != nil {
		m.Stop()
		return nil, fmt.Errorf("the kube-controller-manager is not healthy: %w", err)
	}
	return m, nil
}

// Stop ends the process, and returns when it has ended.
func (m *ControllerManager) Stop() { m.end(syscall.SIGTERM) }
