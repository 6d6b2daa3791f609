package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	activityv1 "github.com/example/nginx-operator/examples/activity/api/v1"
	foov1 "github.com/example/nginx-operator/examples/foo/api/v1"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// patience bounds every wait.
const patience = 30 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually repeats a check until it passes or the context ends, and returns the check's last error then.
func eventually(ctx context.Context, check func() error) error {
	return harness.Eventually(ctx, 25*time.Millisecond, func(context.Context) error { return check() })
}

func waitFor(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, eventually(ctx, check))
}

// newNamespace makes a namespace for one test. What is in it that other tests would notice goes with the test.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{}
	namespace.GenerateName = "test-"
	must(t, suite.admin.Create(t.Context(), namespace))
	t.Cleanup(func() {
		for _, kind := range []client.Object{&foov1.Foo{}, &activityv1.Activity{}, &corev1.Pod{}} {
			if err := suite.admin.DeleteAllOf(context.Background(), kind, client.InNamespace(namespace.Name), client.GracePeriodSeconds(0)); err != nil {
				t.Error(err)
			}
		}
	})
	return namespace.Name
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		must(t, suite.admin.Create(t.Context(), object))
	}
}

// read fills an object with what the API server stores.
func read[T client.Object](t *testing.T, object T) T {
	t.Helper()
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	return object
}

// update changes an object as kubectl edit does.
func update[T client.Object](t *testing.T, object T, change func(T)) {
	t.Helper()
	waitFor(t, func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return suite.admin.Update(t.Context(), object)
	})
}

// report writes a Pod's status as a kubelet does.
func report(t *testing.T, pod *corev1.Pod, status corev1.PodStatus) {
	t.Helper()
	waitFor(t, func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		pod.Status = status
		return suite.admin.Status().Update(t.Context(), pod)
	})
}

// remove deletes an object at once: no kubelet is there to do it later.
func remove(t *testing.T, object client.Object) {
	t.Helper()
	must(t, client.IgnoreNotFound(suite.admin.Delete(context.WithoutCancel(t.Context()), object, client.GracePeriodSeconds(0))))
}

// newPod returns a Pod that the API server takes.
func newPod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	}
}

// told returns type, reason and note of the Events about an object, in the order of their time.
func told(t *testing.T, object client.Object) []string {
	t.Helper()
	list := &eventsv1.EventList{}
	must(t, suite.admin.List(t.Context(), list, client.InNamespace(object.GetNamespace())))
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var out []string
	for i := range list.Items {
		if one := &list.Items[i]; one.Regarding.UID == object.GetUID() {
			out = append(out, strings.Join([]string{one.Type, one.Reason, one.Note}, " "))
		}
	}
	return out
}

// columns returns what kubectl get shows of one object: its columns and its cells, by the path of the resource.
func columns(t *testing.T, path string) map[string]any {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(suite.config)
	must(t, err)
	raw, err := clientset.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	must(t, err)
	table := &metav1.Table{}
	must(t, json.Unmarshal(raw, table))
	out := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		out[column.Name] = table.Rows[0].Cells[i]
	}
	return out
}

// auditEntry is what the API server records of one request of the manager.
type auditEntry struct {
	Verb      string
	ObjectRef struct{ Resource, Subresource, Namespace, Name, APIGroup string }
	Response  struct{ Code int } `json:"responseStatus"`
}

// audit returns the requests of the manager to a namespace, "" for all, with one verb, "" for any.
func audit(t *testing.T, namespace, verb string) []auditEntry {
	t.Helper()
	raw, err := os.ReadFile(suite.auditLog)
	must(t, err)
	var out []auditEntry
	for line := range bytes.Lines(raw) {
		var entry auditEntry
		if json.Unmarshal(line, &entry) == nil && entry.ObjectRef.Resource != "" &&
			(namespace == "" || entry.ObjectRef.Namespace == namespace) && (verb == "" || entry.Verb == verb) {
			out = append(out, entry)
		}
	}
	return out
}

// statusWrites counts the writes of status that the manager made in a namespace.
func statusWrites(t *testing.T, namespace string) int {
	t.Helper()
	entries := audit(t, namespace, "patch")
	return len(slices.DeleteFunc(entries, func(e auditEntry) bool { return e.ObjectRef.Subresource != "status" }))
}

// settled returns how many passes a controller of the running manager has made, once it makes no more. A pass is counted
// at its end, after what it writes.
func settled(t *testing.T, controller string) int {
	t.Helper()
	n := passes(t, controller)
	waitFor(t, func() error {
		before := n
		time.Sleep(300 * time.Millisecond)
		if n = passes(t, controller); n != before {
			return fmt.Errorf("the controller %s is busy", controller)
		}
		return nil
	})
	return n
}

// passes returns how many passes a controller of the running manager has made, from its metrics.
func passes(t *testing.T, controller string) int {
	t.Helper()
	return int(metric(t, `controller_runtime_reconcile_total{controller="`+controller+`"`))
}

// metric returns the sum of the running manager's series that begin so.
func metric(t *testing.T, prefix string) float64 {
	t.Helper()
	total := 0.0
	for line := range strings.Lines(scrape(t)) {
		if strings.HasPrefix(line, prefix) {
			var n float64
			_, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &n)
			must(t, err)
			total += n
		}
	}
	return total
}

// scrape reads the manager's metrics as somebody who may.
func scrape(t *testing.T) string {
	t.Helper()
	var err error
	if suite.scraper == nil {
		suite.scraper, err = apiserver.NewScraper(t.Context(), suite.admin, newNamespace(t), operatorName+"-metrics-reader")
		must(t, err)
	}
	metrics, err := suite.scraper.Scrape(t.Context(), suite.operator.Metrics)
	must(t, err)
	return metrics
}
