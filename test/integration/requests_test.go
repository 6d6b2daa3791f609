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

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
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
		object := newObject(namespace, fmt.Sprintf("web-%d", i))
		object.Spec.Replicas = ptr.To[int32](2)
		create(t, object)
	}
	for i := range 5 {
		waitForCondition(t, namespace, fmt.Sprintf("web-%d", i), v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRolloutInProgress)
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
		waitForCondition(t, namespace, fmt.Sprintf("web-%d", i), v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllReplicasReady)
	}
	if n := count("nginxoperators/status"); n != 10 {
		t.Errorf("%d status writes until 5 objects were Ready, want 10", n)
	}
}

// At steady state nobody writes anything: not over time, and not when the operator starts again and looks at every
// object anew.
func TestNoWritesAtSteadyState(t *testing.T) {
	namespace := newNamespace(t)
	for i := range 20 {
		object := newObject(namespace, fmt.Sprintf("web-%d", i))
		object.Spec.Replicas = ptr.To(int32(i % 3))
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
	suite.operator.stop()
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

func isReady(object *v1alpha1.NginxOperator) bool {
	return slices.ContainsFunc(object.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == v1alpha1.ConditionReady && c.Status == metav1.ConditionTrue
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
	var out []auditEntry
	for line := range bytes.Lines(must1(os.ReadFile(suite.auditLog))(t)) {
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
		resource := entry.ObjectRef.Resource
		if entry.ObjectRef.Subresource != "" {
			resource += "/" + entry.ObjectRef.Subresource
		}
		used.Insert(entry.Verb + " " + entry.ObjectRef.APIGroup + "/" + resource)
		if entry.Response.Code == 403 && entry.ObjectRef.Resource != "deployments" { // TestQuota's
			t.Errorf("refused: %s %s", entry.Verb, resource)
		}
	}
	// Rights that the audit log does not show: admission asks for the first on the operator's behalf
	// (OwnerReferencesPermissionEnforcement), the second is for an Event that repeats within minutes, and an API server
	// that cannot stream a list (before Kubernetes 1.34) is asked to list what is watched.
	used.Insert("update operator.example.com/nginxoperators/finalizers", "patch events.k8s.io/events")
	for grant := range used {
		if watched, found := strings.CutPrefix(grant, "watch "); found {
			used.Insert("list " + watched)
		}
	}

	cluster, local := &rbacv1.ClusterRole{}, &rbacv1.Role{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Name: "nginx-operator-manager-role"}, cluster))
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: "nginx-operator-leader-election-role"}, local))
	for _, rule := range append(cluster.Rules, local.Rules...) {
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
