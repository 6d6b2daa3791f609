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
)

// Process is a program that runs beside the tests. Its log is a file.
type Process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// startProcess starts a program, with its log in a file of a directory.
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

// Pid is the number of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Log returns what the process has logged.
func (p *Process) Log() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// wrong are the lines of a log that are likely to say why a test failed.
var wrong = regexp.MustCompile(`"level":"ERROR"|^[EF]\d{4} |^panic: |DATA RACE`)

// Summary is what a test that failed says of the process: its last errors, and the last line, in which a process says why it
// ended; few of them so that the test's own message is not lost among them. The whole log is kept in the directory TEST_LOGS,
// where that is set.
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

// end sends a signal and returns when the process has ended, after 15 seconds by force.
func (p *Process) end(signal os.Signal) {
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// awaitOK waits until a path is answered with 200, and gives up once the process has ended.
func (p *Process) awaitOK(ctx context.Context, url string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	httpClient := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, //nolint:gosec // self-signed
	}}
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

// startPatience is how long a process may take to start.
const startPatience = 2 * time.Minute

// ManagerOptions say how a manager is started: that of the operator, or that of the examples.
type ManagerOptions struct {
	// Binary is the program, Kubeconfig the file with its RBAC permissions.
	Binary, Kubeconfig string
	// Namespace is where it runs, Dir the directory of its log.
	Namespace, Dir string
	// Service sends it connections once it is ready. Its address is where the API server finds the webhooks, unless
	// WebhookURL is another one.
	Service    *Service
	WebhookURL string
	// Args and Env are further arguments and variables.
	Args, Env []string
}

// Manager is a running manager.
type Manager struct {
	*Process
	// Health, Metrics and Webhooks are host:port of the probes, the metrics and the webhook server.
	Health, Metrics, Webhooks string
	service                   *Service
}

// errEnded says that a process ended by itself.
var errEnded = errors.New("it ended")

// StartManager starts a manager and waits until it is ready. It ends with Stop or Kill. One that ends before it is ready is started
// again, as a kubelet does, with other addresses; why it ended is printed. The third time that is an error.
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

func startManager(options ManagerOptions) (*Manager, error) {
	m := &Manager{service: options.Service}
	var err error
	for _, address := range []*string{&m.Health, &m.Metrics, &m.Webhooks} {
		if *address, err = FreeAddress(); err != nil {
			return nil, err
		}
	}
	url := options.WebhookURL
	if url == "" {
		url = options.Service.URL()
	}
	cmd := exec.Command(options.Binary, append([]string{ //nolint:gosec // the binary is the project's own
		"--health-probe-bind-address=" + m.Health, "--metrics-bind-address=" + m.Metrics, "--operator-namespace=" + options.Namespace,
		"--webhook-bind-address=" + m.Webhooks, "--webhook-url=" + url,
	}, options.Args...)...)
	// GOGC is for the API servers: a manager that has it does not pace its garbage collection, as the released one does.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "GOGC=") })
	cmd.Env = append(append(cmd.Env, "KUBECONFIG="+options.Kubeconfig), options.Env...)
	if m.Process, err = startProcess(cmd, options.Dir, "manager"); err != nil {
		return nil, err
	}
	if err := m.awaitOK(context.Background(), "http://"+m.Health+"/readyz", startPatience); err != nil {
		m.Kill()
		return nil, fmt.Errorf("the manager is not ready: %w", err)
	}
	m.service.Add(m.Webhooks)
	return m, nil
}

// Stop ends the manager as a kubelet does; Kill gives it no time to do anything more. Both return when it has ended, and may be
// called again.
func (m *Manager) Stop() { m.leave(syscall.SIGTERM) }

// Kill is described with Stop.
func (m *Manager) Kill() { m.leave(syscall.SIGKILL) }

func (m *Manager) leave(signal os.Signal) {
	m.service.Remove(m.Webhooks)
	m.end(signal)
}

// The ports of FreeAddress are below those that systems give to connections and to who asks for any port: one of those may be taken
// again before the program listens on it.
const firstPort, lastPort = 10_000, 32_000

// FreeAddress returns an address of 127.0.0.1 on which nothing listens.
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
