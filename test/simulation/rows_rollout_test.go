package simulation

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

func degraded(w *world.World, name string) metav1.Condition {
	found := meta.FindStatusCondition(w.Instance(name).Status.Conditions, v1alpha2.ConditionDegraded)
	return ptr.Deref(found, metav1.Condition{})
}

// rollBack starts a rollout of an image that cannot be pulled, and waits for the rollback.
func rollBack(t *testing.T, w *world.World, name string) {
	t.Helper()
	const bad = "registry.example/missing:1"
	w.Kube.Faults.Unpullable = map[string]string{bad: "manifest unknown"}
	w.Must(w.Change(name, func(object *v1alpha2.NginxOperator) { object.Spec.Image = bad }))
	if !w.Until(10*time.Minute, func() bool { return len(w.Instance(name).Status.FailedRevisions) > 0 }) {
		t.Fatal("the rollout is not rolled back")
	}
	w.Run(2 * time.Minute)
}

// TestRow4PolicyIsNotAnInvalidChild reproduces row 4: a denial by an admission policy is Forbidden,
// for any status code of the policy.
func TestRow4PolicyIsNotAnInvalidChild(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		serve(t, w, newInstance("web"))
		w.Faults.Refuse = map[*storage.Resource]error{storage.Deployments: world.Denied(storage.Deployments, "web")}
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) { object.Spec.ForceRedeploy = "new" }))
		w.Run(5 * time.Minute)
		if got := degraded(w, "web"); got.Status != metav1.ConditionTrue || got.Reason != v1alpha2.ReasonForbidden {
			t.Errorf("Degraded=%s, reason %s, message %s", got.Status, got.Reason, got.Message)
		}
	})
}

// TestRow5PassingErrorRollsNothingBack reproduces row 5: a temporary error of the kubelet does not
// roll back a change.
func TestRow5PassingErrorRollsNothingBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		serve(t, w, newInstance("web"))
		w.Kube.Faults.ConfigError = "failed to sync secret cache: timed out waiting for the condition"
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) { object.Spec.ForceRedeploy = "new" }))
		w.Run(5 * time.Second)
		w.Heal()
		w.Run(5 * time.Minute)
		if !world.IsReady(w.Instance("web")) || len(w.Instance("web").Status.FailedRevisions) > 0 {
			t.Errorf("status %+v", w.Instance("web").Status)
		}
	})
}

// TestRow5NewSecretTriggersAReconcile reproduces row 5: the creation of a Secret that an
// environment variable references starts a reconcile.
func TestRow5NewSecretTriggersAReconcile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		serve(t, w, newInstance("web"))
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) {
			object.Spec.Env = []v1alpha2.EnvVar{{Name: "TOKEN", ValueFrom: &v1alpha2.EnvVarSource{
				SecretKeyRef: &v1alpha2.KeyReference{Name: "token", Key: "token"},
			}}}
		}))
		w.Run(30 * time.Minute)
		w.Must(w.Create(&corev1.Secret{ObjectMeta: world.Meta("token"), Data: map[string][]byte{"token": []byte("x")}}))
		if !w.Until(5*time.Minute, func() bool { return world.IsReady(w.Instance("web")) }) {
			t.Errorf("status %+v", w.Instance("web").Status)
		}
	})
}

// TestRow8PausedAndRolledBack reproduces row 8: the status stays true if an instance is paused
// after a rollback.
func TestRow8PausedAndRolledBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		serve(t, w, newInstance("web"))
		rollBack(t, w, "web")
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) { object.Spec.Paused = true }))
		w.Run(5 * time.Minute)
		if got := degraded(w, "web"); got.Status != metav1.ConditionTrue || got.Reason != v1alpha2.ReasonRolledBack {
			t.Errorf("Degraded=%s, reason %s, message %s", got.Status, got.Reason, got.Message)
		}
	})
}

// TestRow9RollsBackAStalledRollout reproduces row 9: a rollout that has stalled is rolled back once
// automatic rollback is turned on.
func TestRow9RollsBackAStalledRollout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		instance := newInstance("web")
		instance.Spec.Rollout = &v1alpha2.Rollout{AutomaticRollback: ptr.To(false)}
		serve(t, w, instance)
		const bad = "registry.example/slow:1"
		w.Kube.Faults.Unpullable = map[string]string{bad: "i/o timeout"}
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) { object.Spec.Image = bad }))
		w.Run(10 * time.Minute)
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) { object.Spec.Rollout = nil }))
		rolledBack := func() bool { return w.Deployment("web").Spec.Template.Spec.Containers[0].Image == release.Image }
		if !w.Until(10*time.Minute, rolledBack) {
			t.Errorf("status %+v", w.Instance("web").Status)
		}
	})
}

// TestRow10PausedDeployment reproduces row 10: an instance that kubectl rollout pause stops reports
// the reason.
func TestRow10PausedDeployment(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		serve(t, w, newInstance("web"))
		d := w.Deployment("web")
		d.Spec.Paused = true
		w.Must(w.Write(d))
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) { object.Spec.ForceRedeploy = "new" }))
		w.Run(15 * time.Minute)
		if !world.IsReady(w.Instance("web")) && degraded(w, "web").Status != metav1.ConditionTrue {
			t.Errorf("neither Ready nor Degraded: %+v", w.Instance("web").Status.Conditions)
		}
	})
}
