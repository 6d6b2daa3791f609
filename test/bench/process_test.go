//go:build bench || soak

package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is one running operator.
type process struct {
	cmd              *exec.Cmd
	log              string
	health, webhooks string
	done             chan struct{}
	// gone is called before the process ends.
	gone func()
}

// startOperator starts the operator with the settings of the manifests and waits until it is ready. It ends with the test
// at the latest.
func (e *environment) startOperator(t *testing.T) *process {
	t.Helper()
	log, err := os.CreateTemp(e.dir, "operator-*.log")
	must(t, err)
	defer func() { _ = log.Close() }()
	p := &process{log: log.Name(), health: freeAddress(t), webhooks: freeAddress(t), done: make(chan struct{})}
	p.gone = func() { e.service.Remove(p.webhooks) }
	p.cmd = exec.Command(binary, "--leader-elect", "--leader-election-namespace="+operatorNamespace,
		"--health-probe-bind-address="+p.health, "--metrics-bind-address="+freeAddress(t),
		"--operator-namespace="+operatorNamespace, "--webhook-bind-address="+p.webhooks, "--webhook-url="+e.service.URL())
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+e.kubeconfig, "RELATED_IMAGE_NGINX="+operandImage)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	must(t, p.cmd.Start())
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() { p.end(os.Kill) })
	waitFor(t, 2*time.Minute, func() error {
		select {
		case <-p.done:
			t.Fatalf("the operator ended:\n%s", p.logTail())
		default:
		}
		response, err := http.Get("http://" + p.health + "/readyz")
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz answers %d", response.StatusCode)
		}
		return nil
	})
	e.service.Add(p.webhooks)
	return p
}

// startLeader starts the operator and waits until one leads. Nobody else may run.
func (e *environment) startLeader(t *testing.T) *process {
	t.Helper()
	p := e.startOperator(t)
	waitFor(t, 30*time.Second, func() error {
		if e.leader(t) == "" {
			return errors.New("nobody leads")
		}
		return nil
	})
	return p
}

// stop ends the operator as a kubelet does.
func (p *process) stop() { p.end(syscall.SIGTERM) }

func (p *process) end(signal os.Signal) {
	p.gone()
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// memory returns what the kernel counts for the process, in MiB: VmRSS is now, VmHWM was the most.
func (p *process) memory(t *testing.T) (now, most float64) {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	must(t, err)
	of := func(name string) float64 {
		for line := range strings.Lines(string(status)) {
			if fields := strings.Fields(line); len(fields) == 3 && fields[0] == name+":" {
				kibibytes, err := strconv.ParseFloat(fields[1], 64)
				must(t, err)
				return round(kibibytes / 1024)
			}
		}
		t.Fatalf("the kernel does not tell %s", name)
		return 0
	}
	return of("VmRSS"), of("VmHWM")
}

// logTail returns the end of the operator's log.
func (p *process) logTail() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-4000):])
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func readAll(reader io.Reader) string {
	var buffer bytes.Buffer
	_, _ = buffer.ReadFrom(reader)
	return buffer.String()
}
