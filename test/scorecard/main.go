// Command scorecard contains the custom tests that `operator-sdk scorecard` runs in addition to its
// basic and OLM tests. The operator must be running on the cluster. Each test is a Pod in
// scorecard's namespace and prints its result as a scorecard TestStatus. Its ServiceAccount needs
// the RBAC permissions of the ClusterRole nginx-operator-nginxoperator-editor-role.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	scorecard "github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/test/harness"
)

// limit bounds one test. It is shorter than scorecard's own limit (--wait-time), whose error does
// not contain the failed check.
const limit = 90 * time.Second

// test runs the steps of one test, logs each step, and stops at the first error.
type test func(ctx context.Context, run *run) error

var tests = map[string]test{
	"operand-serves":    operandServes,
	"status-truthful":   statusTruthful,
	"versions-agree":    versionsAgree,
	"bad-input-refused": badInputRefused,
}

// run is the environment of a test.
type run struct {
	client    client.Client
	namespace string
	name      string
	log       strings.Builder
}

func (r *run) say(format string, args ...any) {
	fmt.Fprintf(&r.log, format+"\n", args...)
}

func main() {
	if len(os.Args) != 2 || tests[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "say which test to run: %s\n", strings.Join(slices.Sorted(maps.Keys(tests)), ", "))
		os.Exit(2)
	}
	// Scorecard parses the Pod's log as the result, so nothing else may be logged. Without a
	// logger, controller-runtime prints a warning after 30 s.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	status := result(os.Args[1])
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(status); err != nil {
		fmt.Fprintln(os.Stderr, "failed to print the result:", err)
		os.Exit(1)
	}
}

// result runs a test. A failed test is not an error of the program, because scorecard needs the
// result of a failure as well.
func result(name string) scorecard.TestStatus {
	out := scorecard.TestResult{Name: name, State: scorecard.PassState}
	r, err := newRun(name)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		err = errors.Join(tests[name](ctx, r), r.clean())
		out.Log = r.log.String()
	}
	if err != nil {
		out.State, out.Errors = scorecard.FailState, []string{err.Error()}
	}
	return scorecard.TestStatus{Results: []scorecard.TestResult{out}}
}

func newRun(name string) (*run, error) {
	namespace := os.Getenv("SCORECARD_NAMESPACE")
	if namespace == "" {
		return nil, errors.New("SCORECARD_NAMESPACE is not set: run this with operator-sdk scorecard")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("failed to find the cluster: %w", err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, fmt.Errorf("failed to make a client: %w", err)
	}
	return &run{client: api, namespace: namespace, name: "scorecard-" + name}, nil
}

// clean deletes the object of the test.
func (r *run) clean() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.client.Delete(ctx, r.object()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("failed to clean up: %w", err)
	}
	return nil
}

// eventually repeats a check until it passes, or returns an error when ctx ends.
func eventually(ctx context.Context, check func(context.Context) error) error {
	if err := harness.Eventually(ctx, 250*time.Millisecond, check); err != nil {
		return fmt.Errorf("gave up after %s: %w", limit, err)
	}
	return nil
}

// fetch returns the body of a response. A status other than 200 is an error.
func fetch(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{Timeout: 5 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answered %s", url, response.Status)
	}
	return string(body), nil
}
