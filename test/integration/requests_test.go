package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// writes returns the write requests that the API server has counted in its own request metric, but for the Lease of the
// leader election and what the API server writes for itself.
func writes(t *testing.T) int {
	t.Helper()
	clientset := must1(kubernetes.NewForConfig(suite.config))(t)
	raw := must1(clientset.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context()))(t)
	total := 0
	scanner := bufio.NewScanner(bytes.NewReader(raw))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := scanner.Text()
		if !strings.HasPrefix(line, "apiserver_request_total{") || strings.Contains(line, `resource="leases"`) {
			continue
		}
		for _, verb := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE"} {
			if strings.Contains(line, `verb="`+verb+`"`) {
				var n float64
				must1(fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &n))(t)
				total += int(n)
			}
		}
	}
	return total
}

// The operator writes, for a new object, its children and one status while nothing is ready; one more when all is.
func TestWritesOfAFirstReconcile(t *testing.T) {
	namespace := newNamespace(t)
	audited := len(audit(t))
	for i := range 5 {
		object := newServer(namespace, fmt.Sprintf("web-%d", i))
		object.Spec.Replicas = ptr.To[int32](2)
		create(t, object)
	}
	for i := range 5 {
		waitForCondition(t, namespace, fmt.Sprintf("web-%d", i), v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonRolloutInProgress)
	}
	want := map[string]int{
		"configmaps/": 5, "services/": 5, "networkpolicies/": 5, "deployments/": 5, "poddisruptionbudgets/": 5,
		"controllerrevisions/": 5, "nginxoperators/status": 5,
	}
	waitForWrites(t, audited, namespace, want)
	for i := range 5 {
		rollOut(t, namespace, fmt.Sprintf("web-%d", i))
	}
	for i := range 5 {
		waitForCondition(t, namespace, fmt.Sprintf("web-%d", i), v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
	}
	want["nginxoperators/status"] = 10
	waitForWrites(t, audited, namespace, want)
}

// waitForWrites waits until the operator has made so many writes in a namespace since an entry of the audit log, Events aside, and no
// other. The log has a request a moment after others see what it did.
func waitForWrites(t *testing.T, audited int, namespace string, want map[string]int) {
	t.Helper()
	waitFor(t, func() error {
		if diff := cmp.Diff(want, withoutEvents(writesOf(t, audited, namespace))); diff != "" {
			return fmt.Errorf("writes (-want +got):\n%s", diff)
		}
		return nil
	})
}

// writesOf counts the operator's writes in a namespace since an entry of the audit log, by resource and subresource.
func writesOf(t *testing.T, audited int, namespace string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, entry := range audit(t)[audited:] {
		if entry.ObjectRef.Namespace == namespace && entry.IsWrite() {
			out[entry.ObjectRef.Resource+"/"+entry.ObjectRef.Subresource]++
		}
	}
	return out
}

// What is named costs one read when it is new, and one for each of its changes; a change of anything but its content costs
// no write, and one of what nobody names not even a reconcile.
func TestRequestsForReferences(t *testing.T) {
	namespace, other := newNamespace(t), newNamespace(t)
	audited := len(audit(t))
	reads := func() int {
		n := 0
		for _, entry := range audit(t)[audited:] {
			if entry.ObjectRef.Namespace == namespace && entry.Verb == "get" &&
				slices.Contains([]string{"configmaps", "secrets"}, entry.ObjectRef.Resource) {
				n++
			}
		}
		return n
	}
	pages := newConfigMap(namespace, "pages", map[string]string{"index.html": "<p>one"})
	certificate := newSecret(namespace, "named", newCertificate(t))
	for _, source := range []client.Object{newConfigMap(namespace, "named", map[string]string{"web.conf": servers}), pages, certificate} {
		create(t, source)
	}
	object := newServer(namespace, "web")
	for _, reference := range references {
		reference.spec(&object.Spec)
	}
	object.Spec.Content.ConfigMapRef.Name = "pages"
	create(t, object)
	waitForChildren(t, namespace, "web")
	want := map[string]int{
		"configmaps/": 2, "services/": 1, "networkpolicies/": 1, "deployments/": 1, "controllerrevisions/": 1, "nginxoperators/status": 1,
	}
	waitForWrites(t, audited, namespace, want)
	if n := reads(); n != 3 {
		t.Errorf("%d reads of 3 objects", n)
	}
	rollOut(t, namespace, "web")
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
	want["nginxoperators/status"] = 2
	waitForWrites(t, audited, namespace, want)
	if n := reads(); n != 3 {
		t.Errorf("until Ready: %d reads of 3 objects", n)
	}

	quiet := func(what string, passed bool, readMore int, do func()) {
		t.Helper()
		reconcilesBefore, readsBefore := reconciles(t), reads()
		do()
		if passed {
			waitFor(t, func() error {
				if n := reads() - readsBefore; reconciles(t) == reconcilesBefore || n < readMore {
					return fmt.Errorf("%s: no reconcile, or only %d reads", what, n)
				}
				return nil
			})
		}
		// What must not happen has this long to happen.
		time.Sleep(700 * time.Millisecond)
		if now := reconciles(t); (now != reconcilesBefore) != passed {
			t.Errorf("%s: %d reconciles", what, now-reconcilesBefore)
		}
		if n := reads() - readsBefore; n != readMore {
			t.Errorf("%s: %d reads, want %d", what, n, readMore)
		}
	}
	label := func(object client.Object) {
		update(t, object, func(o client.Object) { o.SetLabels(map[string]string{"touched": time.Now().Format("150405.000")}) })
	}
	time.Sleep(6 * time.Second) // what other tests left behind
	quiet("objects of the same names in another namespace", false, 0, func() {
		create(t, newConfigMap(other, "named", nil))
		foreign := newSecret(other, "named", newCertificate(t))
		create(t, foreign)
		label(foreign)
		must(t, suite.admin.Delete(t.Context(), foreign))
	})
	quiet("objects that nobody names", false, 0, func() {
		unnamed := newSecret(namespace, "unnamed", newCertificate(t))
		create(t, unnamed)
		label(unnamed)
		must(t, suite.admin.Delete(t.Context(), unnamed))
		create(t, newConfigMap(namespace, "unnamed", nil))
		create(t, newSecret(namespace, "pages", newCertificate(t)))
	})
	quiet("a label of a Secret that is named", true, 1, func() { label(certificate) })
	quiet("a label of a ConfigMap that is named", true, 1, func() { label(pages) })
	waitForWrites(t, audited, namespace, want)
}

// An edit of a ConfigMap that many name is read once for all of them.
func TestManyNameOneConfigMap(t *testing.T) {
	const referrers = 50
	namespace := newNamespace(t)
	source := references["content"].object(t, namespace)
	create(t, source)
	for i := range referrers {
		object := newServer(namespace, fmt.Sprintf("web-%02d", i))
		references["content"].spec(&object.Spec)
		create(t, object)
	}
	waitForContent := func(want string) {
		t.Helper()
		for i := range referrers {
			name := fmt.Sprintf("web-%02d", i)
			waitForChildren(t, namespace, name)
			waitFor(t, func() error {
				if got := references["content"].seen(must1(childrenOf(t.Context(), namespace, name))(t)); !strings.HasPrefix(got, want) {
					return fmt.Errorf("%s has the content %q", name, got)
				}
				return nil
			})
		}
	}
	waitForContent("<p>one")
	for _, want := range []string{"<p>two", "<p>three"} {
		audited := len(audit(t))
		update(t, source, func(o client.Object) { o.(*corev1.ConfigMap).Data["index.html"] = want })
		waitForContent(want)
		reads := 0
		for _, entry := range audit(t)[audited:] {
			if entry.ObjectRef.Namespace == namespace && entry.Verb == "get" && entry.ObjectRef.Resource == "configmaps" {
				reads++
			}
		}
		if reads != 1 {
			t.Errorf("%d reads for %d referrers", reads, referrers)
		}
	}
}

func withoutEvents(writes map[string]int) map[string]int {
	delete(writes, "events/")
	return writes
}

// reconciles returns how many reconciles the operator has made, from its metrics.
func reconciles(t *testing.T) int {
	t.Helper()
	total := 0
	for line := range strings.Lines(scrape(t)) {
		if strings.HasPrefix(line, `controller_runtime_reconcile_total{controller="nginxoperator"`) {
			var n float64
			must1(fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &n))(t)
			total += int(n)
		}
	}
	if total == 0 {
		t.Fatal("the metrics count no reconcile")
	}
	return total
}

// scrape reads the operator's metrics as somebody who may.
func scrape(t *testing.T) string {
	t.Helper()
	if suite.scraper == nil {
		suite.scraper = must1(apiserver.NewScraper(t.Context(), suite.admin, newNamespace(t), metricsRole))(t)
	}
	return must1(suite.scraper.Scrape(t.Context(), suite.operator.Metrics))(t)
}

// At steady state nobody writes anything: not over time, and not when the operator starts again and looks at every
// object anew.
func TestNoWritesAtSteadyState(t *testing.T) {
	namespace := newNamespace(t)
	for _, source := range []client.Object{
		newConfigMap(namespace, "named", map[string]string{"web.conf": servers}),
		newSecret(namespace, "named", newCertificate(t)),
	} {
		create(t, source)
	}
	for i := range 20 {
		object := newServer(namespace, fmt.Sprintf("web-%d", i))
		object.Spec.Replicas = ptr.To(int32(i % 3))
		if i == 0 {
			for _, reference := range references {
				reference.spec(&object.Spec)
			}
		}
		create(t, object)
	}
	for i := range 20 {
		waitForChildren(t, namespace, fmt.Sprintf("web-%d", i))
		rollOut(t, namespace, fmt.Sprintf("web-%d", i))
		waitFor(t, func() error {
			object := must1(waitForStatusOnce(t.Context(), namespace, fmt.Sprintf("web-%d", i)))(t)
			if object.Status.Replicas != *object.Spec.Replicas || !isReady(object) {
				return fmt.Errorf("not ready: %+v", object.Status)
			}
			return nil
		})
	}
	time.Sleep(6 * time.Second) // put-off status writes and Events of the tests before
	before := writes(t)
	time.Sleep(3 * time.Second)
	if n := writes(t) - before; n != 0 {
		t.Errorf("%d write requests in 3 s in which nothing happened", n)
	}
	suite.operator.Stop()
	audited := len(audit(t))
	before = writes(t)
	startNextOperator(t)
	// A new process knows of no child that it is as declared, and reads each once.
	const children = 3 * 20 // Services, NetworkPolicies and Deployments
	waitFor(t, func() error {
		if n := readsOfChildren(t, audited, namespace); n < children {
			return fmt.Errorf("%d reads of %d children after a restart", n, children)
		}
		return nil
	})
	time.Sleep(3 * time.Second)
	const becameLeader = 1 // the Event of the leader election
	if n := writes(t) - before; n > becameLeader {
		t.Errorf("%d write requests after a restart with %d objects", n, 20)
	}
	if n := readsOfChildren(t, audited, namespace); n != children {
		t.Errorf("%d reads of %d children after a restart", n, children)
	}
}

func isReady(object *v1alpha2.NginxOperator) bool {
	return slices.ContainsFunc(object.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == v1alpha2.ConditionReady && c.Status == metav1.ConditionTrue
	})
}

// audit returns what the operator has asked the API server for.
func audit(t *testing.T) []apiserver.Request {
	t.Helper()
	return must1(apiserver.ReadAudit(suite.auditLog))(t)
}
