package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// largeObjects returns paused NginxOperators of 190 KB, which no reconcile changes.
func largeObjects() []client.Object {
	out := make([]client.Object, scaled(25, 2500))
	for i := range out {
		object := newObject("", fmt.Sprintf("large-%04d", i), 0)
		object.Spec.Paused = true
		object.Spec.Config = &v1alpha2.Config{Inline: "server { listen 8080; }\n" + strings.Repeat("# a comment in a long configuration\n", 1700)}
		for n := range 31 {
			object.Spec.Env = append(object.Spec.Env, v1alpha2.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", n), Value: strings.Repeat("x", 4096)})
		}
		out[i] = object
	}
	return out
}

// survivesLargeObjects stores many large objects of a tenant, and stops the leader. The next leader
// lists all of them. It requires that a change in another namespace is applied, and that no
// container restarts.
func survivesLargeObjects(t *testing.T, attacker *tenant, object *v1alpha2.NginxOperator) {
	t.Helper()
	for part := range slices.Chunk(largeObjects(), 250) { // the time for each part is limited
		attacker.createAll(t, largeWriters, part)
	}
	operator := suite.operatorNamespace
	before, err := leader(t.Context(), operator)
	must(t, err)
	name, _, _ := strings.Cut(before, "_")
	must(t, suite.admin.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: operator, Name: name}}))
	waitForOtherLeader(t, operator, before)

	began := time.Now()
	const annotation = "example.com/next-leader"
	patch := fmt.Appendf(nil, `{"spec":{"service":{"annotations":{%q:"1"}}}}`, annotation)
	must(t, suite.admin.Patch(t.Context(), newObject(object.Namespace, object.Name, 1), client.RawPatch(types.MergePatchType, patch)))
	waitFor(t, operator, "a change by a leader that lists many large objects", patience, func(ctx context.Context) error {
		service := &corev1.Service{}
		err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), service)
		if err == nil && service.Annotations[annotation] != "1" {
			err = fmt.Errorf("the annotations are %v", service.Annotations)
		}
		return err
	})
	t.Logf("FIGURE change in another namespace, by a leader that lists many large objects: %s", seconds(time.Since(began)))
	waitForInstall(t, operator)
	for pod, process := range operatorProcesses(t) {
		if process.restarts > 0 {
			t.Errorf("the operator's container in %s has restarted %d times", pod, process.restarts)
		}
	}
}
