//go:build bench || soak

package bench

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/example/nginx-operator/test/harness"
)

// startOperator starts the operator with the settings of the manifests and waits until it is ready. It ends with the test
// at the latest.
func (e *environment) startOperator(t *testing.T) *harness.Manager {
	t.Helper()
	operator, err := harness.StartManager(harness.ManagerOptions{
		Binary: binary, Kubeconfig: e.kubeconfig, Namespace: operatorNamespace, Dir: e.dir, Service: e.service,
		Args: []string{"--leader-elect", "--leader-election-namespace=" + operatorNamespace},
		Env:  []string{"RELATED_IMAGE_NGINX=" + operandImage},
	})
	must(t, err)
	t.Cleanup(operator.Kill)
	return operator
}

// startLeader starts the operator and waits until one leads. Nobody else may run.
func (e *environment) startLeader(t *testing.T) *harness.Manager {
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

// memory returns what the kernel counts for an operator, in MiB: VmRSS is now, VmHWM was the most.
func memory(t *testing.T, operator *harness.Manager) (now, most float64) {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(operator.Pid()), "status"))
	must(t, err)
	of := func(name string) float64 {
		for line := range strings.Lines(string(status)) {
			if fields := strings.Fields(line); len(fields) == 3 && fields[0] == name+":" {
				kibibytes, err := strconv.ParseFloat(fields[1], 64)
				must(t, err)
				return harness.Round(kibibytes / 1024)
			}
		}
		t.Fatalf("the kernel does not tell %s", name)
		return 0
	}
	return of("VmRSS"), of("VmHWM")
}

func readAll(reader io.Reader) string {
	var buffer bytes.Buffer
	_, _ = buffer.ReadFrom(reader)
	return buffer.String()
}
