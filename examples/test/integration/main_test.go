// Package integration runs the manager of the examples, with exactly the RBAC permissions of
// examples/config, against a real API server and etcd. There is no kubelet and no
// kube-controller-manager: a test does their work. KUBEBUILDER_ASSETS is the directory with
// kube-apiserver and etcd.
package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	activityv1 "github.com/example/nginx-operator/examples/activity/api/v1"
	foov1 "github.com/example/nginx-operator/examples/foo/api/v1"
	myappv1alpha1 "github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
	sidecarsetv1alpha1 "github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

const (
	operatorName      = "nginx-operator-examples"
	operatorNamespace = operatorName + "-system"
	operatorUser      = "system:serviceaccount:" + operatorNamespace + ":" + operatorName + "-controller-manager"

	// patience bounds every wait. interval is the polling interval.
	patience = 30 * time.Second
	interval = 100 * time.Millisecond
)

// program is the manager with the race detector.
var program = "test/examples-race"

// suite is the state that all tests share.
var suite struct {
	server *apiserver.Server
	// admin has all permissions and reads from the API server.
	admin client.WithWatch
	// dir is a temporary directory. binary is the path of the manager.
	dir, binary string
	operator    *harness.Manager
	// service is the endpoint that the API server calls for admission.
	service *harness.Service
	scraper *apiserver.Scraper
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if suite.dir, err = os.MkdirTemp("", operatorName+"-integration-"); err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(suite.dir) }()
	if suite.binary, err = harness.Program(program); err != nil {
		return 0, err
	}
	if suite.server, err = apiserver.Start(suite.dir, operatorUser); err != nil {
		return 0, err
	}
	defer func() { _ = suite.server.Stop() }()
	if err := install(); err != nil {
		return 0, err
	}
	if suite.service, err = harness.NewService(); err != nil {
		return 0, err
	}
	defer suite.service.Close()
	if err := startOperator(); err != nil {
		return 0, err
	}
	code = m.Run()
	if suite.operator.Stop(); code != 0 {
		fmt.Println("the manager:", suite.operator.Summary())
	}
	return code, nil
}

// install applies examples/config and waits for the four APIs.
func install() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	scheme := clientgoscheme.Scheme
	err := errors.Join(foov1.AddToScheme(scheme), activityv1.AddToScheme(scheme), myappv1alpha1.AddToScheme(scheme),
		sidecarsetv1alpha1.AddToScheme(scheme))
	if err != nil {
		return err
	}
	if suite.admin, err = client.NewWithWatch(suite.server.Admin, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := apiserver.Apply(ctx, suite.admin, "../../config"); err != nil {
		return err
	}
	if suite.scraper, err = apiserver.NewScraper(ctx, suite.admin, operatorNamespace, operatorName+"-metrics-reader"); err != nil {
		return err
	}
	return harness.Eventually(ctx, interval, func(ctx context.Context) error {
		return errors.Join(suite.admin.List(ctx, &foov1.FooList{}), suite.admin.List(ctx, &activityv1.ActivityList{}),
			suite.admin.List(ctx, &myappv1alpha1.MyAppList{}), suite.admin.List(ctx, &sidecarsetv1alpha1.SidecarSetList{}))
	})
}

// startOperator starts the manager and waits until it is ready. It uses no leader election, so a
// new manager starts immediately after a kill.
func startOperator() (err error) {
	suite.operator, err = harness.StartManager(harness.ManagerOptions{
		Binary: suite.binary, Kubeconfig: suite.server.Kubeconfig, Namespace: operatorNamespace, Dir: suite.dir, Service: suite.service,
	})
	return err
}

var must = harness.Must

func waitFor(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, harness.Eventually(ctx, interval, func(context.Context) error { return check() }))
}

// waitUntil waits until a condition holds. If it never holds, the error contains the value of seen.
func waitUntil(t *testing.T, seen any, holds func() bool) {
	t.Helper()
	waitFor(t, func() error {
		if !holds() {
			return fmt.Errorf("it is still %+v", seen)
		}
		return nil
	})
}

// newNamespace creates a namespace for one test. The cleanup of the test deletes objects that would
// affect other tests.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, namespace)
	t.Cleanup(func() {
		for _, kind := range []client.Object{&foov1.Foo{}, &activityv1.Activity{}, &corev1.Pod{}} {
			ofTest, atOnce := client.InNamespace(namespace.Name), client.GracePeriodSeconds(0)
			if err := suite.admin.DeleteAllOf(context.Background(), kind, ofTest, atOnce); err != nil {
				t.Error(err)
			}
		}
	})
	return namespace.Name
}

// sample reads an object from a file below examples and sets its namespace and name.
func sample[T client.Object](t *testing.T, document string, object T, namespace, name string) T {
	t.Helper()
	must(t, yaml.UnmarshalStrict(harness.Must1(os.ReadFile("../../"+document))(t), object))
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		must(t, suite.admin.Create(t.Context(), object))
	}
}

// read reads an object from the API server and returns it.
func read[T client.Object](t *testing.T, object T) T {
	t.Helper()
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	return object
}

// update reads, changes, and writes an object, and retries after a conflict.
func update[T client.Object](t *testing.T, object T, change func(T)) {
	t.Helper()
	waitFor(t, func() error {
		change(read(t, object))
		return suite.admin.Update(t.Context(), object)
	})
}

// report writes a Pod's status, as the kubelet does.
func report(t *testing.T, pod *corev1.Pod, status corev1.PodStatus) {
	t.Helper()
	waitFor(t, func() error {
		read(t, pod).Status = status
		return suite.admin.Status().Update(t.Context(), pod)
	})
}

// remove deletes an object without a grace period, because no kubelet would complete the deletion.
func remove(t *testing.T, object client.Object) {
	t.Helper()
	must(t, client.IgnoreNotFound(suite.admin.Delete(context.WithoutCancel(t.Context()), object, client.GracePeriodSeconds(0))))
}

func newPod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	}
}

// waitForEvents waits until an object has exactly these Events, as "type reason note", ordered by
// time.
func waitForEvents(t *testing.T, object client.Object, want ...string) {
	t.Helper()
	var got []string
	waitUntil(t, &got, func() bool {
		got = nil
		list := &eventsv1.EventList{}
		must(t, suite.admin.List(t.Context(), list, client.InNamespace(object.GetNamespace())))
		slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
		for _, event := range list.Items {
			if event.Regarding.UID == object.GetUID() {
				got = append(got, event.Type+" "+event.Reason+" "+event.Note)
			}
		}
		return slices.Equal(got, want)
	})
}

// audit returns the matching requests of the manager from the audit log.
func audit(t *testing.T, matches func(apiserver.Request) bool) []apiserver.Request {
	t.Helper()
	requests := harness.Must1(apiserver.ReadAudit(suite.server.AuditLog))(t)
	return slices.DeleteFunc(requests, func(r apiserver.Request) bool { return !matches(r) })
}

// settled waits until a controller has completed no reconcile for some time, and returns the number
// of its completed reconciles.
func settled(t *testing.T, controller string) int {
	t.Helper()
	for last := -1; ; time.Sleep(3 * interval) {
		before := last
		if last = reconciles(t, controller); last == before {
			return last
		}
	}
}

// reconciles returns the number of completed reconciles of a controller, or 0 if it has not
// started.
func reconciles(t *testing.T, controller string) (total int) {
	t.Helper()
	metrics := harness.Must1(suite.scraper.Scrape(t.Context(), suite.operator.Metrics))(t)
	samples, _ := harness.Samples(metrics, "controller_runtime_reconcile_total")
	for _, sample := range samples {
		if sample.Labels["controller"] == controller {
			total += int(sample.Value)
		}
	}
	return total
}
