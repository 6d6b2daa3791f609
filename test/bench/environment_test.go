//go:build bench || soak

package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

const (
	operatorNamespace = harness.OperatorNamespace
	operatorUser      = harness.OperatorUser
	operandImage      = harness.OperandImage
	// concurrency is the number of workers of the operator and of the clients that it is compared
	// with.
	concurrency = 10
)

// binary is the path of the operator, built with the flags of a release. BENCH_OPERATOR is the
// absolute path of another build, for a comparison of two versions.
var binary string

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code, err := 0, error(nil)
	if attacks := os.Getenv(attackVariable); attacks != "" {
		err = attackUntilEOF(attacks)
	} else {
		code, err = run(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "nginx-operator-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if binary = os.Getenv("BENCH_OPERATOR"); binary != "" {
		return m.Run(), nil
	}
	binary = filepath.Join(dir, "manager")
	build := exec.Command("go", "build", "-ldflags", "-s -w -X main.version=bench", "-o", binary, "../..")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("failed to build the operator: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// seconds returns a duration in seconds, rounded for reports.
func seconds(duration time.Duration) float64 { return harness.Round(duration.Seconds()) }

var must = harness.Must

func must1[T any](value T, err error) func(testing.TB) T { return harness.Must1(value, err) }

// intFromEnv returns an environment variable as a number, or otherwise if the variable is not set.
func intFromEnv(t *testing.T, name string, otherwise int) int {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	number, err := strconv.Atoi(value)
	if err != nil || number < 0 {
		t.Fatalf("%s is %q, must be a number", name, value)
	}
	return number
}

// waitFor repeats a check until it passes. After patience, it fails the test with the last error.
func waitFor(t *testing.T, patience time.Duration, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := harness.Eventually(ctx, 20*time.Millisecond, func(context.Context) error { return check() }); err != nil {
		t.Fatalf("after %s: %v", patience, err)
	}
}

// environment is an API server with the operator's manifests applied.
type environment struct {
	// admin has all permissions. bare has the RBAC permissions of the operator. Neither has a
	// client-side rate limit.
	admin, bare client.WithWatch
	// metrics reads the API server's own metrics.
	metrics rest.Interface
	// server is the API server. It is nil on the local cluster.
	server *apiserver.Server
	// dir is a temporary directory.
	dir string
	// service is the endpoint that the API server calls for conversion and admission.
	service *harness.Service
	// placement is where Pods of instances with replicas run, or nil if it is not restricted.
	placement *v1alpha2.PodTemplate
	// deleting has the names of the namespaces whose deletion has started.
	deleting []string
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	dir := t.TempDir()
	service := must1(harness.NewService())(t)
	t.Cleanup(service.Close)
	server := must1(apiserver.Start(dir, operatorUser))(t)
	t.Cleanup(func() { must(t, server.Stop()) })
	e := newClients(t, server.Admin, server.Operator)
	e.server, e.service, e.dir = server, service, dir
	must(t, apiserver.ApplyUnchanged(t.Context(), e.admin, "../../config/default"))
	waitFor(t, time.Minute, func() error { return e.admin.List(t.Context(), &v1alpha2.NginxOperatorList{}) })
	return e
}

// newClients returns an environment with clients of an administrator and of the operator.
func newClients(t *testing.T, admin, operator *rest.Config) *environment {
	t.Helper()
	admin.QPS, operator.QPS = -1, -1
	options := client.Options{Scheme: scheme.New()}
	return &environment{
		admin:   must1(client.NewWithWatch(admin, options))(t),
		bare:    must1(client.NewWithWatch(operator, options))(t),
		metrics: must1(kubernetes.NewForConfig(admin))(t).RESTClient(),
	}
}

func (e *environment) newNamespace(t *testing.T, name string) string {
	t.Helper()
	must(t, e.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	return name
}

// waitForDeletions waits until the namespaces that are being deleted are gone.
func (e *environment) waitForDeletions(t *testing.T) {
	t.Helper()
	for _, name := range e.deleting {
		waitFor(t, 5*time.Minute, func() error {
			err := e.admin.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{})
			if err == nil {
				time.Sleep(500 * time.Millisecond)
				return fmt.Errorf("namespace %s is still there", name)
			}
			return client.IgnoreNotFound(err)
		})
	}
	e.deleting = nil
}

func newInstance(namespace string, i int) *v1alpha2.NginxOperator {
	return &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("web-%05d", i)}}
}

// onPort returns the ports of an instance that listens on a single port.
func onPort(port int32) []v1alpha2.Port {
	return []v1alpha2.Port{{Name: v1alpha2.DefaultPortName, Port: port, Protocol: corev1.ProtocolTCP}}
}

// inParallel calls harness.InParallel and fails the test with its first error.
func inParallel(t *testing.T, workers, n int, do func(ctx context.Context, i int) error) {
	t.Helper()
	must(t, harness.InParallel(t.Context(), workers, n, do))
}

// waitForStatus waits until n objects of a namespace have a status of their current generation. The
// operator writes the status after the children. A watch keeps the load on the API server low.
func (e *environment) waitForStatus(t *testing.T, namespace string, n int, patience time.Duration) {
	t.Helper()
	must1(e.watchStatus(t.Context(), namespace, n, patience))(t)
}

// watchStatus watches until n objects have a status of their current generation, and returns the
// first such version of each. It starts a new watch if the API server closes one, for example
// because the client is too slow.
func (e *environment) watchStatus(
	ctx context.Context, namespace string, n int, patience time.Duration,
) (done map[string]*v1alpha2.NginxOperator, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	done = map[string]*v1alpha2.NginxOperator{}
	for len(done) < n {
		watcher, err := e.admin.Watch(ctx, &v1alpha2.NginxOperatorList{}, client.InNamespace(namespace))
		if err != nil {
			return nil, fmt.Errorf("%d of %d objects have a status: %w", len(done), n, err)
		}
		for open := true; open && len(done) < n; {
			var event watch.Event
			if event, open = <-watcher.ResultChan(); !open {
				break
			}
			object, ok := event.Object.(*v1alpha2.NginxOperator)
			if ok && done[object.Name] == nil && object.Status.ObservedGeneration == object.Generation {
				done[object.Name] = object
			}
		}
		watcher.Stop()
	}
	return done, nil
}

// rollOut writes the status of a Deployment whose replicas of the newest revision are all ready, as
// the Deployment controller does.
func (e *environment) rollOut(ctx context.Context, deployment *appsv1.Deployment) error {
	n := ptr.Deref(deployment.Spec.Replicas, 1)
	before := deployment.DeepCopy()
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	return e.admin.Status().Patch(ctx, deployment, client.MergeFrom(before))
}

// leader returns the holder of the Lease, or "" if there is none.
func (e *environment) leader(t *testing.T) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	err := e.admin.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: harness.LeaseName}, lease)
	must(t, client.IgnoreNotFound(err))
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}
