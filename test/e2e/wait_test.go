package e2e

// This file waits, and says what there is where a wait fails.

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

// patience bounds a wait for the operator and the operands; installing takes OLM longer, and so does the control plane the
// migration of hundreds of objects, on a processor that readers, writers and a load share with it.
const (
	patience          = 2 * time.Minute
	installPatience   = 3 * time.Minute
	migrationPatience = 10 * time.Minute
	pollInterval      = 50 * time.Millisecond
)

// What is waited for long is asked for less often, once in the fortieth part of the time so far and every half second at least: who
// reads InstallPlans and CRDs twenty times a second keeps the API server from the work that is waited for.
const pollPart, pollSlowest = 40, 500 * time.Millisecond

var must = harness.Must

// seconds writes a duration as figures in a log are read.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// eventually repeats a check until it passes or the context ends, and returns the check's last error then.
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

// waitFor waits until a check passes and returns how long that took. Where it does not, the test ends with what is in
// the namespace and in the operator's.
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

// inTime requires that what is measured takes no longer than a limit in one of two tries: a busy machine is late now and then, but what
// waits for something that it should not wait for is late each time.
func inTime(t *testing.T, limit time.Duration, measure func() time.Duration) {
	t.Helper()
	took := measure()
	if took > limit {
		took = measure()
	}
	if took > limit {
		t.Errorf("it took %s", seconds(took))
	}
}

// holds checks for a while that something stays as it is. It ends the test at the first time that it does not.
func holds(t *testing.T, namespace, what string, duration time.Duration, check func(context.Context) error) {
	t.Helper()
	holdsUntil(t, namespace, what, time.Now().Add(duration), check)
}

// holdsUntil does the same until a time, and once if that is over.
func holdsUntil(t *testing.T, namespace, what string, end time.Time, check func(context.Context) error) {
	t.Helper()
	for {
		last := !time.Now().Before(end)
		if err := check(t.Context()); err != nil {
			fatal(t, namespace, "%s: %v", what, err)
		}
		if last {
			return
		}
		time.Sleep(pollInterval)
	}
}

// fatal ends a test with a message, after it has kept what is in the namespace and in the operator's.
func fatal(t *testing.T, namespace, format string, args ...any) {
	t.Helper()
	keepReport(t, namespace)
	t.Fatalf(format, args...)
}

// keepReport writes the report of a namespace to a file of its own and logs where that is: the messages of failures have to be
// found among what the tests print.
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

// report says what is in a namespace and what the operator said last.
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

// command runs a program and returns what it printed. Its error holds that, too.
func command(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	// Some of them leave files where they run.
	cmd.Dir = suite.dir
	// A child that keeps the output open must not hold the test up.
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("failed to run %s %s: %w\n%s%s",
			name, strings.Join(args, " "), errors.Join(err, ctx.Err()), stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

// kubectl runs kubectl as a user does and returns what it printed.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := command(ctx, "kubectl", args...)
	must(t, err)
	return out
}
