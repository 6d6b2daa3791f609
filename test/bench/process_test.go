//go:build bench || soak

package bench

import (
	"errors"
	"testing"
	"time"

	"github.com/example/nginx-operator/test/harness"
)

// startOperator starts the operator with the settings of the manifests, and more arguments, and
// waits until it is ready. The cleanup of the test kills it.
func (e *environment) startOperator(t *testing.T, args ...string) *harness.Manager {
	t.Helper()
	operator, err := harness.StartManager(harness.ManagerOptions{
		Binary: binary, Kubeconfig: e.server.Kubeconfig, Namespace: operatorNamespace, Dir: e.dir, Service: e.service,
		Args: append(args, "--leader-elect", "--leader-election-namespace="+operatorNamespace),
		Env:  []string{"RELATED_IMAGE_NGINX=" + operandImage},
	})
	must(t, err)
	t.Cleanup(operator.Kill)
	return operator
}

// startLeader starts the operator and waits until it leads. No other operator may be running.
func (e *environment) startLeader(t *testing.T, args ...string) *harness.Manager {
	t.Helper()
	p := e.startOperator(t, args...)
	waitFor(t, 30*time.Second, func() error {
		if e.leader(t) == "" {
			return errors.New("nobody leads")
		}
		return nil
	})
	return p
}

// memory returns the current and the peak memory of an operator in MiB, as reported by the kernel.
func memory(t *testing.T, operator *harness.Manager) (now, most float64) {
	t.Helper()
	now, most, err := harness.Memory(operator.Pid())
	must(t, err)
	return now, most
}

// processorTime returns the CPU time that a process has used so far.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	return must1(harness.ProcessorTime(pid))(t)
}

// apiServerTime returns the CPU time that the API server has used so far.
func (e *environment) apiServerTime(t *testing.T) time.Duration {
	t.Helper()
	raw := must1(e.metrics.Get().AbsPath("/metrics").DoRaw(t.Context()))(t)
	samples := must1(harness.Samples(string(raw), "process_cpu_seconds_total"))(t)
	if len(samples) != 1 {
		t.Fatalf("want one process_cpu_seconds_total of the API server, got %d", len(samples))
	}
	return time.Duration(samples[0].Value * float64(time.Second))
}
