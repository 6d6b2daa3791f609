package harness

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// ControllerManager is a running kube-controller-manager that migrates stored objects and does nothing else that a test
// would notice.
type ControllerManager struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// StartControllerManager starts a kube-controller-manager with the rights of a kubeconfig and waits until it is healthy.
// It knows the kinds that exist by then at once, later ones only after up to 30 s. Its files are in the folder. It ends
// with Stop.
func StartControllerManager(ctx context.Context, binary, kubeconfig, dir string) (*ControllerManager, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("failed to choose a port: %w", err)
	}
	log, err := os.Create(filepath.Join(dir, "kube-controller-manager.log")) //nolint:gosec // the folder is the test's own
	if err != nil {
		return nil, fmt.Errorf("failed to make the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	m := &ControllerManager{log: log.Name(), done: make(chan struct{})}
	m.cmd = exec.Command(binary, //nolint:gosec // the binary is the project's own
		"--bind-address="+host, "--secure-port="+port, "--cert-dir="+dir,
		"--kubeconfig="+kubeconfig, "--leader-elect=false",
		// The migrator takes the list of objects from the garbage collector.
		"--controllers=storage-version-migrator-controller,garbage-collector-controller",
		// As the cluster of the end-to-end tests has it.
		"--kube-api-qps=200", "--kube-api-burst=400",
	)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("failed to start the kube-controller-manager: %w", err)
	}
	go func() { _ = m.cmd.Wait(); close(m.done) }()

	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := Eventually(ctx, 50*time.Millisecond, func(ctx context.Context) error { return m.healthy(ctx, address, cancel) }); err != nil {
		m.Stop()
		return nil, fmt.Errorf("failed to start the kube-controller-manager: %w\n%s", err, m.Log())
	}
	return m, nil
}

// healthy asks for the health, and gives up once the process has ended.
func (m *ControllerManager) healthy(ctx context.Context, address string, giveUp func()) error {
	select {
	case <-m.done:
		giveUp()
		return errors.New("it ended")
	default:
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/healthz", nil)
	if err != nil {
		return err
	}
	asker := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, //nolint:gosec // self-signed
	}}
	response, err := asker.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/healthz answers %s", response.Status)
	}
	return nil
}

// Stop ends the process, and returns when it has ended.
func (m *ControllerManager) Stop() {
	_ = m.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-m.done:
	case <-time.After(10 * time.Second):
		_ = m.cmd.Process.Kill()
		<-m.done
	}
}

// Log returns what the process has logged.
func (m *ControllerManager) Log() string {
	log, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// freeAddress returns an address of 127.0.0.1 on which nothing listens.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("failed to choose a port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}
