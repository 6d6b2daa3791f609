package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/test/harness"
)

// startOperator starts the operator's binary with additional environment variables and waits until
// it is ready.
func startOperator(env ...string) (*harness.Manager, error) {
	return harness.StartManager(harness.ManagerOptions{
		Binary: suite.binary, Kubeconfig: suite.kubeconfig, Namespace: operatorNamespace, Dir: suite.dir, Service: suite.service,
		Args: []string{"--leader-elect", "--leader-election-namespace=" + operatorNamespace},
		Env:  append([]string{"RELATED_IMAGE_NGINX=" + operandImage, "NGINX_OPERATOR_CLUSTER_NAMESERVERS=10.96.0.10"}, env...),
	})
}

// startNextOperator starts the operator that replaces the one that a test stopped. If it fails,
// later tests use an operator that does not answer.
func startNextOperator(t *testing.T) {
	t.Helper()
	suite.operator = must1(startOperator())(t)
}

// restartOperator replaces the operator, which looks again which optional kinds are served. It
// would end its process and look again by itself, but not within five minutes after its election.
func restartOperator(t *testing.T) {
	t.Helper()
	must(t, suite.operator.KillLeader(suite.admin))
	startNextOperator(t)
}

// TestRefusesToStart verifies that an invalid command line or environment exits with status 1 and
// one line that names the remedy.
func TestRefusesToStart(t *testing.T) {
	t.Parallel()
	kubeconfig := string(must1(os.ReadFile(suite.kubeconfig))(t))
	server := regexp.MustCompile(`server: .*`)
	if !server.MatchString(kubeconfig) {
		t.Fatal("the kubeconfig names no server")
	}
	unreachable := server.ReplaceAllString(kubeconfig, "server: https://"+must1(harness.FreeAddress())(t))
	wrongKubeconfig := suite.dir + "/unreachable.kubeconfig"
	must(t, os.WriteFile(wrongKubeconfig, []byte(unreachable), 0o600))
	image := "RELATED_IMAGE_NGINX=" + operandImage
	for name, test := range map[string]struct {
		args, env []string
		want      string
	}{
		"unknown flag":        {args: []string{"--no-such-flag"}, want: "unknown flag: --no-such-flag"},
		"argument":            {args: []string{"run"}, env: []string{image}, want: `unexpected argument "run"`},
		"no default image":    {want: "set --nginx-image or RELATED_IMAGE_NGINX"},
		"empty operand image": {env: []string{"RELATED_IMAGE_NGINX="}, want: "set --nginx-image or RELATED_IMAGE_NGINX"},
		"bad variable": {
			env:  []string{image, "NGINX_OPERATOR_KUBE_API_BURST=many"},
			want: "environment variable NGINX_OPERATOR_KUBE_API_BURST",
		},
		"bad webhook address":    {args: []string{"--webhook-bind-address=here"}, env: []string{image}, want: "--webhook-bind-address"},
		"bad webhook URL":        {args: []string{"--webhook-url=http://127.0.0.1:9443"}, env: []string{image}, want: "--webhook-url"},
		"bad log level":          {args: []string{"--log-level=loud"}, env: []string{image}, want: "--log-level"},
		"no concurrency":         {args: []string{"--max-concurrent-reconciles=0"}, env: []string{image}, want: "--max-concurrent-reconciles"},
		"unreachable API server": {env: []string{image, "KUBECONFIG=" + wrongKubeconfig}, want: "failed to reach the API server"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, suite.binary, test.args...)
			cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KUBECONFIG=") }), test.env...)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("want exit status 1, got %v", err)
			}
			if lines := strings.Split(strings.TrimSpace(string(out)), "\n"); len(lines) != 1 || !strings.Contains(lines[0], test.want) {
				t.Errorf("want one line with %q, got:\n%s", test.want, out)
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	help := must1(exec.Command(suite.binary, "--help").CombinedOutput())(t)
	for _, want := range []string{"--leader-elect", "NGINX_OPERATOR_METRICS_BIND_ADDRESS", "RELATED_IMAGE_NGINX"} {
		if !strings.Contains(string(help), want) {
			t.Errorf("--help does not speak of %s:\n%s", want, help)
		}
	}
	version := must1(exec.Command(suite.binary, "--version").CombinedOutput())(t)
	if string(version) != "integration\n" {
		t.Errorf("--version printed %q", version)
	}
}

// TestMetricsEndpoint verifies that the operator serves its metrics over HTTPS, only to clients
// that the API server authenticates and authorizes to read them.
func TestMetricsEndpoint(t *testing.T) {
	namespace := newNamespace(t)
	stranger := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stranger"}}
	create(t, stranger)
	token := &authenticationv1.TokenRequest{}
	must(t, suite.admin.SubResource("token").Create(t.Context(), stranger, token))
	for token, want := range map[string]int{"": http.StatusUnauthorized, token.Status.Token: http.StatusForbidden} {
		code, body, err := harness.GetMetrics(t.Context(), "https://"+suite.operator.Metrics, token)
		must(t, err)
		if code != want {
			t.Errorf("want %d, got %d: %s", want, code, body)
		}
	}
	create(t, newObject(namespace, "counted"))
	waitFor(t, func() error {
		body := scrape(t)
		for _, want := range []string{
			`nginx_operator_objects{ready="False"}`, `nginx_operator_child_writes_total{kind="Deployment",verb="create"}`,
			"nginx_operator_time_to_ready_seconds_count", "controller_runtime_reconcile_total",
		} {
			if !strings.Contains(body, want) {
				return fmt.Errorf("metrics lack %s", want)
			}
		}
		if strings.Contains(body, `"counted"`) {
			return errors.New("a metric names an object")
		}
		return nil
	})
}

// TestHandoverAfterCleanStop verifies that after a clean stop, the next replica leads before the
// Lease expires, which is 15 s after its last renewal. The end-to-end tests measure the duration,
// because nothing else runs there at the same time.
func TestHandoverAfterCleanStop(t *testing.T) {
	standby := must1(startOperator())(t)
	holder := leaseHolder(t)
	began := time.Now()
	// The stopped operator releases the Lease immediately. Its webhooks still answer for a while.
	before := suite.operator
	ended := make(chan struct{})
	go func() { before.Stop(); close(ended) }()
	t.Cleanup(func() { <-ended })
	waitFor(t, func() error {
		if now := leaseHolder(t); now == holder || now == "" {
			return fmt.Errorf("%q has the Lease", now)
		}
		return nil
	})
	suite.operator = standby
	took := time.Since(began)
	t.Logf("another replica led %s after the leader was asked to stop", took.Round(time.Millisecond))
	if took > 10*time.Second {
		t.Errorf("the handover took %s", took)
	}
	namespace := newNamespace(t)
	create(t, newObject(namespace, "after-handover"))
	waitForChildren(t, namespace, "after-handover")
}

func leaseHolder(t *testing.T) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: harness.LeaseName}, lease))
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
