package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
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
	count := func(resource string) int {
		n := 0
		for _, entry := range audit(t)[audited:] {
			if entry.ObjectRef.Namespace == namespace && entry.ObjectRef.Resource+"/"+entry.ObjectRef.Subresource == resource && entry.isWrite() {
				n++
			}
		}
		return n
	}
	for _, resource := range []string{"configmaps/", "services/", "networkpolicies/", "deployments/", "poddisruptionbudgets/", "nginxoperators/status"} {
		if n := count(resource); n != 5 {
			t.Errorf("%d writes of %s for 5 objects", n, resource)
		}
	}
	for i := range 5 {
		rollOut(t, namespace, fmt.Sprintf("web-%d", i))
	}
	for i := range 5 {
		waitForCondition(t, namespace, fmt.Sprintf("web-%d", i), v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
	}
	if n := count("nginxoperators/status"); n != 10 {
		t.Errorf("%d status writes until 5 objects were Ready, want 10", n)
	}
}

// writesOf counts the operator's writes in a namespace since an entry of the audit log, by resource and subresource.
func writesOf(t *testing.T, audited int, namespace string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, entry := range audit(t)[audited:] {
		if entry.ObjectRef.Namespace == namespace && entry.isWrite() {
			out[entry.ObjectRef.Resource+"/"+entry.ObjectRef.Subresource]++
		}
	}
	return out
}

// What is named costs one read when it is new, and one for each of its changes; a change of anything but its content costs
// no write, and one of what nobody names not even a pass.
func TestRequestsForReferences(t *testing.T) {
	namespace, other := newNamespace(t), newNamespace(t)
	audited := len(audit(t))
	reads := func() int {
		n := 0
		for _, entry := range audit(t)[audited:] {
			if entry.ObjectRef.Namespace == namespace && entry.Verb == "get" && slices.Contains([]string{"configmaps", "secrets"}, entry.ObjectRef.Resource) {
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
	want := map[string]int{"configmaps/": 2, "services/": 1, "networkpolicies/": 1, "deployments/": 1, "nginxoperators/status": 1}
	if diff := cmp.Diff(want, withoutEvents(writesOf(t, audited, namespace))); diff != "" || reads() != 3 {
		t.Errorf("%d reads of 3 objects, writes (-want +got):\n%s", reads(), diff)
	}
	rollOut(t, namespace, "web")
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
	want["nginxoperators/status"] = 2
	if diff := cmp.Diff(want, withoutEvents(writesOf(t, audited, namespace))); diff != "" || reads() != 3 {
		t.Errorf("until Ready: %d reads, writes (-want +got):\n%s", reads(), diff)
	}

	quiet := func(what string, passed bool, readMore int, do func()) {
		t.Helper()
		passesBefore, readsBefore := passes(t), reads()
		do()
		time.Sleep(700 * time.Millisecond)
		if now := passes(t); (now != passesBefore) != passed {
			t.Errorf("%s: %d passes", what, now-passesBefore)
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
	if diff := cmp.Diff(want, withoutEvents(writesOf(t, audited, namespace))); diff != "" {
		t.Errorf("at the end, writes (-want +got):\n%s", diff)
	}
}

func withoutEvents(writes map[string]int) map[string]int {
	delete(writes, "events/")
	return writes
}

// passes returns how many passes the operator has made, from its metrics.
func passes(t *testing.T) int {
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
		t.Fatal("the metrics count no pass")
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
	for _, source := range []client.Object{newConfigMap(namespace, "named", map[string]string{"web.conf": servers}), newSecret(namespace, "named", newCertificate(t))} {
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
	var err error
	before = writes(t)
	suite.operator, err = startOperator()
	must(t, err)
	time.Sleep(4 * time.Second)
	if leaseHolder(t) == "" {
		t.Error("nobody leads, so nothing was looked at")
	}
	const becameLeader = 1 // the Event of the leader election
	if n := writes(t) - before; n > becameLeader {
		t.Errorf("%d write requests after a restart with %d objects", n, 20)
	}
}

func isReady(object *v1alpha2.NginxOperator) bool {
	return slices.ContainsFunc(object.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == v1alpha2.ConditionReady && c.Status == metav1.ConditionTrue
	})
}

// auditEntry is what the API server records of one request of the operator.
type auditEntry struct {
	Verb      string
	ObjectRef struct{ Resource, Subresource, Namespace, APIGroup string }
	Response  struct{ Code int } `json:"responseStatus"`
}

func (e *auditEntry) isWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb)
}

func audit(t *testing.T) []auditEntry {
	t.Helper()
	return auditOf(t, suite.auditLog)
}

// right returns the right that a request takes, as roles grant it.
func (e *auditEntry) right() string {
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return e.Verb + " " + e.ObjectRef.APIGroup + "/" + resource
}

// auditOf reads the audit log of an API server.
func auditOf(t *testing.T, file string) []auditEntry {
	t.Helper()
	var out []auditEntry
	for line := range bytes.Lines(must1(os.ReadFile(file))(t)) {
		var entry auditEntry
		if json.Unmarshal(line, &entry) == nil && entry.ObjectRef.Resource != "" {
			out = append(out, entry)
		}
	}
	return out
}

// TestZRights runs last: the operator was refused nothing, and has used every verb that its roles grant.
func TestZRights(t *testing.T) {
	used := sets.New[string]()
	for _, entry := range audit(t) {
		used.Insert(entry.right())
		if entry.Response.Code == 403 && entry.ObjectRef.Resource != "deployments" { // TestQuota's
			t.Errorf("refused: %s", entry.right())
		}
	}
	// Rights that the audit log does not show: admission asks for the first five on the operator's behalf
	// (OwnerReferencesPermissionEnforcement), the sixth is for an Event that repeats within minutes, and an API server
	// that cannot stream a list (before Kubernetes 1.34) is asked to list what is watched.
	used.Insert("update operator.example.com/nginxoperators/finalizers",
		"delete /secrets", "delete apps/deployments", "delete /services", "delete networking.k8s.io/networkpolicies", "patch events.k8s.io/events")
	// Nothing is migrated here; TestMigrationByTheControlPlane and TestMigrationByTheOperator look at these.
	used.Insert(migrationRights...)
	used.Insert(kubeMigratorRights...)
	// A StorageVersionMigration of that API is deleted only if the definition changes while it is worked on.
	used.Insert("delete migration.k8s.io/storageversionmigrations")
	for grant := range used {
		if watched, found := strings.CutPrefix(grant, "watch "); found {
			used.Insert("list " + watched)
		}
	}

	cluster, election, local := &rbacv1.ClusterRole{}, &rbacv1.Role{}, &rbacv1.Role{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Name: "nginx-operator-manager-role"}, cluster))
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: "nginx-operator-leader-election-role"}, election))
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: "nginx-operator-manager-role"}, local))
	for _, rule := range slices.Concat(cluster.Rules, election.Rules, local.Rules) {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if grant := verb + " " + group + "/" + resource; !used.Has(grant) {
						t.Errorf("granted and never used: %s", grant)
					}
				}
			}
		}
	}
}
