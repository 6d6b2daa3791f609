package harness

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
)

// Migrators are the controllers that migrate stored objects. The migrator gets the list of objects
// from the garbage collector. They have no other effect that a test would notice. They know
// existing kinds immediately, and kinds that are added later after up to 30 s.
var Migrators = []string{"storage-version-migrator-controller", "garbage-collector-controller"}

// StartControllerManager starts a kube-controller-manager with some controllers and the RBAC
// permissions of a kubeconfig, and waits until it is healthy. Its log and certificates are in dir.
func StartControllerManager(ctx context.Context, binary, kubeconfig, dir string, controllers ...string) (*Process, error) {
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
		"--controllers="+strings.Join(controllers, ","),
		// Same limits as in the cluster of the end-to-end tests.
		"--kube-api-qps=200", "--kube-api-burst=400",
		// Log why a migration is retried.
		"--vmodule=storageversionmigrator=2,resourceversion=2",
	)
	return startServer(ctx, cmd, dir, "kube-controller-manager", "https://"+address+"/healthz")
}
