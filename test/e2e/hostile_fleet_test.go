package e2e

// Tenants that try to stop the rollout of a release for others, one with an instance that fails, one with an instance that is slow.
//
//   - Each is a canary, served before, and cannot start again.
//   - Its namespace stops. The other namespaces go on, and OLM may replace the operator when the tenants' objects are gone.

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

// slowDeadline is the longest progressDeadlineSeconds.
const slowDeadline = 3600

// fleetAttack are the instances of two tenants that do not start again.
type fleetAttack struct {
	failing, slow *tenant
}

// tenantsHoldFleet has two tenants create their instances, waits until these serve, and takes away what they need to start again. Call it
// before the operator has another default image.
func tenantsHoldFleet(t *testing.T) *fleetAttack {
	t.Helper()
	a := &fleetAttack{failing: newTenant(t), slow: newTenant(t)}
	backend := newBackend(a.failing.namespace)
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.slow.namespace, Name: "page"}, Data: map[string]string{"a": "b"}}
	must(t, a.failing.Create(t.Context(), backend))
	must(t, a.slow.Create(t.Context(), page))

	failing, slow := newCanary(a.failing.namespace), newCanary(a.slow.namespace)
	failing.Spec.Config = &v1alpha2.Config{Inline: proxyTo("backend")}
	// The kubelet waits for a ConfigMap that does not exist, and the Pod fails at its deadline only.
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

// holds requires that both attacks take place: one instance was rolled back, the other rolls.
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

// newCanary returns an instance that asks to be the first to roll.
func newCanary(namespace string) *v1alpha2.NginxOperator {
	object := newObject(namespace, canary, 1)
	object.Labels = map[string]string{wellknown.LabelCanary: "true"}
	return object
}

// proxyTo returns a configuration that cannot start without a Service of that name.
func proxyTo(service string) string {
	return "server {\n    listen 8080;\n    root /usr/share/nginx/html;\n    location /api { proxy_pass http://" + service + "; }\n}\n"
}
