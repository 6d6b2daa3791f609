package e2e

// Helpers that wait, and that report the state of the cluster if a wait fails.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/example/nginx-operator/test/harness"
)

// patience bounds a wait for the operator and the operands. OLM takes longer to install. The
// control plane takes longer to migrate hundreds of objects while readers, writers, and a load use
// the same CPU.
const (
	patience          = 2 * time.Minute
	installPatience   = 6 * time.Minute
	migrationPatience = 10 * time.Minute
	pollInterval      = 50 * time.Millisecond
)

// Long waits poll less often. The interval is a fortieth of the elapsed time, but at most 500 ms.
// Reading InstallPlans and CRDs 20 times per second would slow down the API server.
const pollPart, pollSlowest = 40, 500 * time.Millisecond

var must = harness.Must

// seconds formats a duration for the log.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// eventually repeats a check until it passes or the context ends. If the context ends, it returns
// the check's last error.
func eventually(ctx context.Context, check func(context.Context) error) error {
	began := time.Now()
	return harness.Eventually(ctx, pollInterval, func(ctx context.Context) error {
		err := check(ctx)
		if err != nil {
			time.Sleep(min(time.Since(began)/pollPart, pollSlowest) - pollInterval)
		}
		return err
	})
}

// waitFor waits until a check passes and returns how long that took. If the check does not pass
// within the limit, waitFor ends the test with a report of the namespace and of the operator's
// namespace.
func waitFor(t *testing.T, namespace, what string, limit time.Duration, check func(context.Context) error) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	if err := eventually(ctx, check); err != nil {
		fatal(t, namespace, "failed to wait %s for %s: %v", limit, what, err)
	}
	return time.Since(began)
}

// holds requires a check to pass repeatedly for a duration, and at least once. The first failure
// ends the test.
func holds(t *testing.T, namespace, what string, duration time.Duration, check func(context.Context) error) {
	t.Helper()
	for end := time.Now().Add(duration); ; time.Sleep(pollInterval) {
		last := !time.Now().Before(end)
		if err := check(t.Context()); err != nil {
			fatal(t, namespace, "%s: %v", what, err)
		}
		if last {
			return
		}
	}
}

// fatal writes a report of the namespace and of the operator's namespace, and ends the test with a
// message.
func fatal(t *testing.T, namespace, format string, args ...any) {
	t.Helper()
	keepReport(t, namespace)
	t.Fatalf(format, args...)
}

// keepReport writes the report of a namespace to a separate file and logs its path, so that the
// report does not hide the failure messages in the test output.
func keepReport(t *testing.T, namespace string) {
	t.Helper()
	directory := filepath.Join(suite.repository, "dist", "test-logs")
	file := filepath.Join(directory, strings.ReplaceAll(t.Name(), "/", "_")+".txt")
	text := report(namespace)
	if err := errors.Join(os.MkdirAll(directory, 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Logf("%s\nthat could not be kept: %v", text, err)
		return
	}
	t.Log("the state of the namespace and of the operator: " + file)
}

// report returns the state of a namespace and of the operator's namespace, with the operator's
// latest log lines.
func report(namespace string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var out strings.Builder
	show := func(title string, args ...string) {
		text, err := command(ctx, "kubectl", args...)
		if err != nil {
			text = err.Error()
		}
		fmt.Fprintf(&out, "--- %s\n%s\n", title, strings.TrimSpace(text))
	}
	describe := func(namespace string) {
		show("objects in "+namespace, "get", "-n", namespace, "deployments,replicasets,pods,services,jobs", "-o", "wide")
		show("events in "+namespace, "get", "-n", namespace, "events", "--sort-by=.metadata.creationTimestamp",
			"-o", "custom-columns=LAST:.lastTimestamp,TYPE:.type,REASON:.reason,OBJECT:.involvedObject.name,MESSAGE:.message")
	}
	if namespace != "" && namespace != suite.operatorNamespace {
		show("conditions in "+namespace, "get", "-n", namespace, "nginxoperators", "-o",
			`jsonpath={range .items[*]}{.metadata.name} {.spec} generation {.metadata.generation}{"\n"}`+
				`{range .status.conditions[*]}  {.type}={.status} {.reason}: {.message}{"\n"}{end}{end}`)
		describe(namespace)
	}
	if namespace := suite.operatorNamespace; namespace != "" {
		show("OLM in "+namespace, "get", "-n", namespace, "catalogsources,subscriptions,installplans,clusterserviceversions", "-o", "wide")
		describe(namespace)
		show("log of the operator", "logs", "-n", namespace, "-l", operatorSelector, "--prefix", "--tail=30")
	}
	return out.String()
}

// command runs a program and returns its stdout. The error contains stdout and stderr.
func command(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	// Some commands leave files in their working directory.
	cmd.Dir = suite.dir
	// A child process that keeps the output open must not block the test.
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("failed to run %s %s: %w\n%s%s",
			name, strings.Join(args, " "), errors.Join(err, ctx.Err()), stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

// kubectl runs kubectl as users do and returns its stdout.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := command(ctx, "kubectl", args...)
	must(t, err)
	return out
}
