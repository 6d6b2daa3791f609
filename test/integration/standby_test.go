package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

// watchedByLeader are kinds that only the leader watches. The API server itself watches none of
// them.
var watchedByLeader = []string{
	"nginxoperators", "deployments", "replicasets", "controllerrevisions", "networkpolicies", "ingresses", "poddisruptionbudgets",
	"horizontalpodautoscalers",
}

// watchesOfLeader returns the number of open watches of each of these kinds.
func watchesOfLeader(t *testing.T) map[string]int {
	t.Helper()
	clientset := must1(kubernetes.NewForConfig(suite.config))(t)
	raw := must1(clientset.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context()))(t)
	out := map[string]int{}
	for _, sample := range must1(harness.Samples(string(raw), "apiserver_longrunning_requests"))(t) {
		if resource := sample.Labels["resource"]; sample.Labels["verb"] == "WATCH" && slices.Contains(watchedByLeader, resource) {
			out[resource] += int(sample.Value)
		}
	}
	return out
}

// waitForWatches waits until the API server has this number of watches of each of these kinds.
func waitForWatches(t *testing.T, want int) {
	t.Helper()
	waitFor(t, func() error {
		now := watchesOfLeader(t)
		for _, resource := range watchedByLeader {
			if now[resource] != want {
				return fmt.Errorf("want %d watches of %s, got %v", want, resource, now)
			}
		}
		return nil
	})
}

// TestStandbyWatchesNothing verifies that a standby watches no kind of the leader, and that after
// the leader was killed, the standby applies a change of the spec and recreates a deleted child,
// both from the time when nobody led.
func TestStandbyWatchesNothing(t *testing.T) {
	namespace := newNamespace(t)
	object := newInstance(namespace, "while-nobody-leads")
	create(t, object)
	waitForChildren(t, namespace, object.Name)
	waitForWatches(t, 1)

	standby := must1(startOperator())(t)
	before, holder := suite.operator, leaseHolder(t)
	suite.operator = standby
	before.Kill()
	waitForWatches(t, 0)
	if now := leaseHolder(t); now != holder {
		t.Fatalf("%q leads already, so the watches of the standby were not counted", now)
	}

	changed := time.Now()
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = ptr.To[int32](4) })
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: object.Name}}
	must(t, suite.admin.Delete(t.Context(), policy))
	waitFor(t, func() error {
		now, err := childrenOf(t.Context(), namespace, object.Name)
		if err != nil {
			return err
		}
		if replicas := ptr.Deref(now.deployment.Spec.Replicas, 1); replicas != 4 || now.policy == nil {
			return fmt.Errorf("%d replicas, NetworkPolicy: %t", replicas, now.policy != nil)
		}
		return nil
	})
	t.Logf("applied %s after the change", time.Since(changed).Round(time.Millisecond))
	waitForWatches(t, 1)
}
