package e2e

// Tenants try to stop a fleet rollout for all others: one with a failing instance, one
// with a slow instance.
//
//   - Each instance is a canary that was ready before and cannot start again.
//   - The rollout stops in the tenant's namespace only. OLM can replace the operator after the
//     tenants' objects are deleted.

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// slowDeadline is the maximum of progressDeadlineSeconds.
const slowDeadline = 3600

// fleetAttack has two tenants whose instances cannot start again.
type fleetAttack struct {
	failing, slow *tenant
}

// tenantsHoldFleet creates an instance for each of two tenants, waits until both are ready, and
// deletes the objects that they need to start again. Call it before the operator gets another
// default image.
func tenantsHoldFleet(t *testing.T) *fleetAttack {
	t.Helper()
	a := &fleetAttack{failing: newTenant(t), slow: newTenant(t)}
	backend := newBackend(a.failing.namespace)
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.slow.namespace, Name: "page"}, Data: map[string]string{"a": "b"}}
	must(t, a.failing.Create(t.Context(), backend))
	must(t, a.slow.Create(t.Context(), page))

	failing, slow := newCanary(a.failing.namespace), newCanary(a.slow.namespace)
	failing.Spec.Config = &v1alpha2.Config{Inline: proxyTo("backend")}
	// The kubelet waits for a missing ConfigMap, so the rollout fails only at its deadline.
	slow.Spec.Volumes = []v1alpha2.Volume{{
		Name: "page", MountPath: "/usr/share/nginx/page", ReadOnly: true, ConfigMap: &v1alpha2.ConfigMapVolume{Name: "page"},
	}}
	slow.Spec.Rollout = &v1alpha2.Rollout{ProgressDeadlineSeconds: ptr.To[int32](slowDeadline)}
	must(t, a.failing.Create(t.Context(), failing))
	must(t, a.slow.Create(t.Context(), slow))
	waitForReady(t, failing)
	waitForReady(t, slow)
	must(t, a.failing.Delete(t.Context(), backend))
	must(t, a.slow.Delete(t.Context(), page))
	return a
}

// holds requires that both attacks work: one instance was rolled back, and the other is rolling
// out.
func (a *fleetAttack) holds(t *testing.T) {
	t.Helper()
	waitFor(t, a.failing.namespace, "the tenant's instance to fail", patience, func(ctx context.Context) error {
		return hasCondition(ctx, newCanary(a.failing.namespace), v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack)
	})
	waitFor(t, a.slow.namespace, "the tenant's instance to roll", patience, func(ctx context.Context) error {
		_, rolling, err := rolloutOf(ctx, a.slow.namespace)
		if len(rolling) == 0 {
			err = errors.Join(err, errors.New("none rolls"))
		}
		return err
	})
}

// end deletes the tenants' objects.
func (a *fleetAttack) end(t *testing.T) {
	t.Helper()
	for _, one := range []*tenant{a.failing, a.slow} {
		must(t, client.IgnoreNotFound(one.Delete(t.Context(), newCanary(one.namespace))))
	}
}

// newCanary returns an instance with the canary label, which requests to roll first.
func newCanary(namespace string) *v1alpha2.NginxOperator {
	object := newObject(namespace, canary, 1)
	object.Labels = map[string]string{wellknown.LabelCanary: "true"}
	return object
}

// proxyTo returns a configuration with which nginx cannot start unless a Service of that name
// exists.
func proxyTo(service string) string {
	return "server {\n    listen 8080;\n    root /usr/share/nginx/html;\n    location /api { proxy_pass http://" + service + "; }\n}\n"
}
