package integration

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is one running manager.
type process struct {
	cmd                    *exec.Cmd
	log                    lockedBuffer
	done                   chan struct{}
	healthPort, metricPort int
	// webhooks is the address of its webhook server.
	webhooks string
}

// lockedBuffer is written by the process and read by the tests.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// startOperator starts the manager and waits until it is ready. It elects nobody: after a kill the next one begins at once.
func startOperator() (*process, error) {
	p := &process{healthPort: freePort(), metricPort: freePort(), webhooks: fmt.Sprintf("127.0.0.1:%d", freePort()), done: make(chan struct{})}
	p.cmd = exec.Command(suite.binary,
		fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", p.healthPort),
		fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", p.metricPort),
		"--operator-namespace="+operatorNamespace, "--webhook-bind-address="+p.webhooks, "--webhook-url="+suite.service.URL(),
	)
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+suite.kubeconfig, "POD_NAMESPACE="+operatorNamespace)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	for range 300 {
		if response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", p.healthPort)); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				suite.service.Add(p.webhooks)
				return p, nil
			}
		}
		select {
		case <-p.done:
			return nil, fmt.Errorf("the manager ended:\n%s", p.log.String())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil, fmt.Errorf("the manager was not ready after 30 s:\n%s", p.stop())
}

// stop ends the manager as a kubelet does and returns its log; kill gives it no time to do anything more.
func (p *process) stop() string { return p.end(syscall.SIGTERM) }
func (p *process) kill()        { p.end(syscall.SIGKILL) }

func (p *process) end(signal os.Signal) string {
	suite.service.Remove(p.webhooks)
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	return p.log.String()
}

// restart starts the manager that all tests share anew.
func restart(t *testing.T) {
	t.Helper()
	next, err := startOperator()
	must(t, err)
	suite.operator = next
}

func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}
