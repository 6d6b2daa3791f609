package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// writes returns the number of write requests in the API server's own request metric. It does not
// count Leases of the leader election and of the API server, and reviews that reading the metrics
// causes.
func writes(t *testing.T) int {
	t.Helper()
	notCounted := []string{"authentication.k8s.io", "authorization.k8s.io"}
	total := 0
	for _, sample := range must1(harness.Samples(apiServerMetrics(t), "apiserver_request_total"))(t) {
		labels := sample.Labels
		if labels["resource"] != "leases" && !slices.Contains(notCounted, labels["group"]) &&
			slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}, labels["verb"]) {
			total += int(sample.Value)
		}
	}
	return total
}

// TestWritesOfAFirstReconcile verifies that the operator writes the children of a new object, one
// status while no replica is ready, and one more status when all replicas are ready. It sends no
// Event: 5, 6, and 7 writes with 0, 1, and 2 replicas.
func TestWritesOfAFirstReconcile(t *testing.T) {
	const each = 5
	for replicas, total := range []int{5, 6, 7} {
		t.Run(fmt.Sprintf("%d replicas", replicas), func(t *testing.T) {
			namespace := newNamespace(t)
			audited := len(audit(t))
			names := []string{}
			for i := range each {
				names = append(names, fmt.Sprintf("web-%d", i))
				object := newInstance(namespace, names[i])
				object.Spec.Replicas = ptr.To(int32(replicas)) //nolint:gosec // it is small
				create(t, object)
			}

			want := map[string]int{
				"configmaps/": each, "services/": each, "networkpolicies/": each, "deployments/": each, "nginxoperators/status": each,
			}
			if replicas > 1 {
				want["poddisruptionbudgets/"] = each
			}
			if replicas > 0 {
				for _, name := range names {
					waitForCondition(t, namespace, name, v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonRolloutInProgress)
				}
				waitForWrites(t, audited, namespace, want)
				for _, name := range names {
					rollOut(t, namespace, name)
				}
				want["nginxoperators/status"] += each
			}
			for _, name := range names {
				waitForStatus(t, namespace, name, func(object *v1alpha2.NginxOperator) error {
					if !isReady(object) {
						return fmt.Errorf("%s is not ready: %+v", name, object.Status.Conditions)
					}
					return nil
				})
			}

			waitForNoWork(t)
			waitForWrites(t, audited, namespace, want)
			all := 0
			for _, count := range writesOf(t, audited, namespace) {
				all += count
			}
			if all != total*each {
				t.Errorf("%d writes for %d objects, want %d for each: %v", all, each, total, writesOf(t, audited, namespace))
			}
		})
	}
}

// waitForWrites waits until the operator has made exactly these writes in a namespace, without
// Events, after the first audited entries of the audit log. A request appears in the audit log
// shortly after its effect is visible.
func waitForWrites(t *testing.T, audited int, namespace string, want map[string]int) {
	t.Helper()
	waitFor(t, func() error {
		if diff := cmp.Diff(want, withoutEvents(writesOf(t, audited, namespace))); diff != "" {
			return fmt.Errorf("writes (-want +got):\n%s", diff)
		}
		return nil
	})
}

// writesOf counts the operator's writes in a namespace after the first audited entries of the audit
// log, by resource and subresource.
func writesOf(t *testing.T, audited int, namespace string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, entry := range audit(t)[audited:] {
		if entry.ObjectRef.Namespace == namespace && entry.IsWrite() && !strings.HasPrefix(entry.ObjectRef.Name, markerName) {
			out[entry.ObjectRef.Resource+"/"+entry.ObjectRef.Subresource]++
		}
	}
	return out
}

func withoutEvents(writes map[string]int) map[string]int {
	delete(writes, "events/")
	return writes
}

// reconciles returns the number of the operator's reconciles, from its metrics.
func reconciles(t *testing.T) int {
	t.Helper()
	total := sumOf(t, "controller_runtime_reconcile_total", "controller", "nginxoperator")
	if total == 0 {
		t.Fatal("the metrics count no reconcile")
	}
	return total
}

// scrape reads the operator's metrics with the permissions of the metrics role.
func scrape(t *testing.T) string {
	t.Helper()
	if suite.scraper == nil {
		suite.scraper = must1(apiserver.NewScraper(t.Context(), suite.admin, newNamespace(t), metricsRole))(t)
	}
	return must1(suite.scraper.Scrape(t.Context(), suite.operator.Metrics))(t)
}

func isReady(object *v1alpha2.NginxOperator) bool {
	return meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha2.ConditionReady)
}

// audit returns the requests that the operator has sent to the API server.
func audit(t *testing.T) []apiserver.Request {
	t.Helper()
	return must1(apiserver.ReadAudit(suite.auditLog))(t)
}
