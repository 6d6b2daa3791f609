package harness

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Process is a program that runs next to the tests. It logs to a file.
type Process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// startProcess starts a program that logs to a file in dir.
func startProcess(cmd *exec.Cmd, dir, name string) (*Process, error) {
	log, err := os.CreateTemp(dir, name+"-*.log")
	if err != nil {
		return nil, fmt.Errorf("failed to make the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	p := &Process{cmd: cmd, log: log.Name(), done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("failed to start %s: %w", name, err)
	}
	go func() { _ = cmd.Wait(); close(p.done) }()
	return p, nil
}

// startServer starts a program, and waits until a URL of it responds with status 200.
func startServer(ctx context.Context, cmd *exec.Cmd, dir, name, url string) (*Process, error) {
	p, err := startProcess(cmd, dir, name)
	if err != nil {
		return nil, err
	}
	if err := p.awaitOK(ctx, url); err != nil {
		p.Stop()
		return nil, fmt.Errorf("%s is not ready: %w", name, err)
	}
	return p, nil
}

// Stop sends SIGTERM and returns when the process has ended. It can be called more than once.
func (p *Process) Stop() { p.end(syscall.SIGTERM) }

// Pid returns the process ID.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Log returns the log of the process.
func (p *Process) Log() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// wrong matches log lines that are likely to show why a test failed.
var wrong = regexp.MustCompile(`"level":"ERROR"|^[EF]\d{4} |^panic: |DATA RACE`)

// Summary returns the last errors in the log and its last line, in which a process reports why it
// ended. It is short, so that the test's own message stays visible. If TEST_LOGS is set, it copies
// the whole log to that directory.
func (p *Process) Summary() string {
	log := p.Log()
	out := summary(log)
	directory := os.Getenv("TEST_LOGS")
	if directory == "" {
		return out
	}
	file := filepath.Join(directory, filepath.Base(p.log))
	if err := errors.Join(os.MkdirAll(directory, 0o755), os.WriteFile(file, []byte(log), 0o600)); err != nil {
		return fmt.Sprintf("%s\nits log could not be kept: %v", out, err)
	}
	return out + "\nits log: " + file
}

func summary(log string) string {
	all := strings.Split(strings.TrimSpace(log), "\n")
	last := len(all) - 1
	lines := slices.DeleteFunc(slices.Clone(all[:last]), func(line string) bool { return !wrong.MatchString(line) })
	if len(lines) == 0 {
		lines = all[:last]
	}
	return strings.Join(append(slices.Clone(lines[max(0, len(lines)-5):]), all[last]), "\n")
}

// end sends a signal and returns when the process has ended. After 15 seconds it kills the process.
func (p *Process) end(signal os.Signal) {
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// insecure accepts self-signed certificates.
var insecure = &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, //nolint:gosec // self-signed
}

// awaitOK waits until a URL responds with status 200. It returns an error after startPatience, or
// if the process ends.
func (p *Process) awaitOK(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	httpClient := &http.Client{Transport: insecure}
	err := Eventually(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		select {
		case <-p.done:
			return nil
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := httpClient.Do(request)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", request.URL.Path, response.Status)
		}
		return nil
	})
	select {
	case <-p.done:
		err = fmt.Errorf("%w (%s)", errEnded, p.cmd.ProcessState)
	default:
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.Summary())
	}
	return nil
}

// startPatience is the maximum start time of a process.
const startPatience = 2 * time.Minute

// ManagerOptions configure a manager: the operator, or the manager of the examples.
type ManagerOptions struct {
	// Binary is the path of the program. Kubeconfig is a file with its RBAC permissions.
	Binary, Kubeconfig string
	// Namespace is the operator namespace. Dir is the directory of the log.
	Namespace, Dir string
	// Service forwards connections to the manager once it is ready. The API server calls the
	// webhooks at the address of Service.
	Service *Service
	// Args and Env are additional arguments and environment variables.
	Args, Env []string
}

// Manager is a running manager.
type Manager struct {
	*Process
	// Health, Metrics, and Webhooks are the addresses (host:port) of the probes, the metrics, and
	// the webhook server.
	Health, Metrics, Webhooks string
	service                   *Service
}

// errEnded reports that a process ended before it was ready.
var errEnded = errors.New("it ended")

// StartManager starts a manager and waits until it is ready. Stop or Kill ends it. If the manager
// ends before it is ready, StartManager prints the reason and restarts it like a kubelet, but with
// other addresses. It returns an error after the third attempt.
func StartManager(options ManagerOptions) (*Manager, error) {
	const tries = 3
	for try := 1; ; try++ {
		m, err := startManager(options)
		if try == tries || !errors.Is(err, errEnded) {
			return m, err
		}
		fmt.Fprintln(os.Stderr, "Starting again:", err)
	}
}

// runtimeSettings are the settings of the Go runtime in config/manager/manager.yaml, so that the
// manager behaves like a released one.
var runtimeSettings = []string{"GOMEMLIMIT=250MiB", "GOMAXPROCS=2"}

func startManager(options ManagerOptions) (*Manager, error) {
	m := &Manager{service: options.Service}
	var err error
	for _, address := range []*string{&m.Health, &m.Metrics, &m.Webhooks} {
		if *address, err = FreeAddress(); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(options.Binary, append([]string{ //nolint:gosec // the binary is the project's own
		"--health-probe-bind-address=" + m.Health, "--metrics-bind-address=" + m.Metrics, "--operator-namespace=" + options.Namespace,
		"--webhook-bind-address=" + m.Webhooks, "--webhook-url=" + options.Service.URL(),
	}, options.Args...)...)
	cmd.Env = slices.Concat(os.Environ(), runtimeSettings, []string{"KUBECONFIG=" + options.Kubeconfig}, options.Env)
	if m.Process, err = startServer(context.Background(), cmd, options.Dir, "manager", "http://"+m.Health+"/readyz"); err != nil {
		return nil, err
	}
	m.service.Add(m.Webhooks)
	return m, nil
}

// Stop sends SIGTERM, like a kubelet, and returns when the manager has ended. It can be called more
// than once.
func (m *Manager) Stop() { m.leave(syscall.SIGTERM) }

// Kill sends SIGKILL and returns when the manager has ended. It can be called more than once.
func (m *Manager) Kill() { m.leave(syscall.SIGKILL) }

// KillLeader kills the operator and deletes its Lease, which would expire 15 s later. The next
// operator leads at once.
func (m *Manager) KillLeader(admin client.Client) error {
	m.Kill()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: OperatorNamespace, Name: LeaseName}}
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	return client.IgnoreNotFound(admin.Delete(ctx, lease))
}

func (m *Manager) leave(signal os.Signal) {
	m.service.Remove(m.Webhooks)
	m.end(signal)
}

// firstPort and lastPort bound the ports that FreeAddress returns. They are below the usual
// ephemeral port range. The kernel could assign an ephemeral port to another process before the
// program listens on it.
const firstPort, lastPort = 10_000, 32_000

// FreeAddress returns an address of 127.0.0.1 with an unused port.
func FreeAddress() (string, error) {
	var last error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // which port it is need not be secret
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return listener.Addr().String(), listener.Close()
		}
		last = err
	}
	return "", fmt.Errorf("failed to choose a port: %w", last)
}
