package nginxoperator

import (
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/pkg/apply"
)

// withImage sets the image. The tests of this file run complete reconciles in which two features
// interact.

func withImage(image string) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) { s.Image = image }
}

// exceedsQuota refuses objects of one kind like a quota.
func exceedsQuota[T client.Object](object client.Object) error {
	if _, is := object.(T); !is {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, object.GetName(), errors.New("exceeded quota: q"))
}

// TestRefusedChildBesidePods verifies that, if a child that no Pod depends on is refused, the
// declaration is recorded, stale children are deleted, and Ready stays True. A later blocked change
// does not affect the Pods.
func TestRefusedChildBesidePods(t *testing.T) {
	p := newProcess(t, func(s *v1alpha2.NginxOperatorSpec) {
		s.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "servers"}}
		s.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 3}
	})
	servers := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "servers"}}
	servers.Data = map[string]string{"nginx.conf": "server { listen 8080; }"}
	p.make(servers)
	p.reconcile()
	p.rollOut(podReady)

	p.refuse = exceedsQuota[*networkingv1.Ingress]
	p.edit(func(s *v1alpha2.NginxOperatorSpec) {
		s.Image, s.Autoscaling = "nginx:other", nil
		fixture.Exposed(v1alpha2.IngressHost{Host: "shop.example.com"})(s)
	})
	p.rollOut(podReady)
	id := p.deployment().Annotations["operator.example.com/change"]
	if got := p.status().LastGoodRevision; got == nil || got.Change != id || got.Image != "nginx:other" {
		t.Errorf("last good revision %+v, the Deployment has the change %s", got, id)
	}
	if err := p.Get(t.Context(), instance, &autoscalingv2.HorizontalPodAutoscaler{}); !apierrors.IsNotFound(err) {
		t.Errorf("the removed autoscaler: %v", err)
	}
	conditions := p.status().Conditions
	degraded := p.condition(v1alpha2.ConditionDegraded)
	if !meta.IsStatusConditionTrue(conditions, v1alpha2.ConditionReady) || degraded.Reason != v1alpha2.ReasonQuotaExceeded ||
		!strings.Contains(degraded.Message, "Ingress") {
		t.Errorf("conditions %+v", conditions)
	}

	if err := p.Delete(t.Context(), servers); err != nil {
		t.Fatal(err)
	}
	p.reconcile()
	if got := p.image(); got != "nginx:other" {
		t.Errorf("a missing ConfigMap put the Pods back to %s", got)
	}
	if got := p.condition(v1alpha2.ConditionReady).Reason; got != v1alpha2.ReasonReferenceNotFound {
		t.Errorf("Ready %s", got)
	}
}

// TestRollbackDespiteRefusedChild verifies that a rollout is rolled back even if a child that no
// Pod depends on is refused.
func TestRollbackDespiteRefusedChild(t *testing.T) {
	p := newProcess(t)
	p.rollOut(podReady)
	p.refuse = exceedsQuota[*networkingv1.Ingress]
	p.edit(func(s *v1alpha2.NginxOperatorSpec) {
		s.Image = "nginx:other"
		fixture.Exposed(v1alpha2.IngressHost{Host: "shop.example.com"})(s)
	})
	p.rollOut(podCrashing)
	if got := p.image(); got != fixture.Image {
		t.Errorf("the Pods have %s", got)
	}
	if got := p.condition(v1alpha2.ConditionDegraded).Reason; got != v1alpha2.ReasonRolledBack {
		t.Errorf("Degraded %s", got)
	}
}

// TestChangeWithoutPodsIsNotRolledBack verifies that a change that does not affect the Pod template
// is not rolled back if a running Pod crashes.
func TestChangeWithoutPodsIsNotRolledBack(t *testing.T) {
	p := newProcess(t)
	p.rollOut(podReady)
	p.rollOut(podCrashing)
	p.edit(func(s *v1alpha2.NginxOperatorSpec) {
		s.Service = &v1alpha2.Service{Annotations: map[string]string{"team": "shop"}}
	})
	p.rollOut(podCrashing)
	if got := read[corev1.Service](p, "web").Annotations["team"]; got != "shop" {
		t.Errorf("the Service has the annotation %q", got)
	}
	if failed := p.status().FailedRevisions; len(failed) > 0 {
		t.Errorf("failed revisions %+v", failed)
	}
	if got := p.condition(v1alpha2.ConditionDegraded).Reason; got != v1alpha2.ReasonCrashLoop {
		t.Errorf("Degraded %s", got)
	}
}

// TestPauseOfRolledBackChange verifies that a pause and its end neither falsify the status of a
// change that was rolled back nor retry the change.
func TestPauseOfRolledBackChange(t *testing.T) {
	p := newProcess(t)
	p.rollOut(podReady)
	p.edit(withImage("nginx:other"))
	p.rollOut(podCrashing)
	p.rollOut(podReady)
	for _, paused := range []bool{true, false} {
		p.edit(func(s *v1alpha2.NginxOperatorSpec) { s.Paused = paused })
		degraded := p.condition(v1alpha2.ConditionDegraded)
		if degraded.Status != metav1.ConditionTrue || degraded.Reason != v1alpha2.ReasonRolledBack || p.image() != fixture.Image {
			t.Errorf("paused %t: Degraded=%s %s, image %s", paused, degraded.Status, degraded.Reason, p.image())
		}
		if slices.ContainsFunc(p.status().BlockedBy, func(b v1alpha2.Blocker) bool { return b.Reason == v1alpha2.ReasonPaused }) {
			t.Errorf("paused %t: blocked by %+v", paused, p.status().BlockedBy)
		}
	}
}

// TestAutomaticRollbackIsTurnedOn verifies that a stalled rollout is rolled back once
// automaticRollback is turned on.
func TestAutomaticRollbackIsTurnedOn(t *testing.T) {
	p := newProcess(t, func(s *v1alpha2.NginxOperatorSpec) { s.Rollout = &v1alpha2.Rollout{AutomaticRollback: ptr.To(false)} })
	p.rollOut(podReady)
	p.edit(withImage("nginx:other"))
	p.rollOut(podPulling, isStalled)
	if got := p.image(); got != "nginx:other" {
		t.Fatalf("rolled back to %s without automaticRollback", got)
	}
	p.age()
	p.edit(func(s *v1alpha2.NginxOperatorSpec) { s.Rollout = nil })
	if got := p.image(); got != fixture.Image {
		t.Errorf("the Pods have %s", got)
	}
}

// TestPausedDeployment verifies that a paused Deployment is reported with the remedy.
func TestPausedDeployment(t *testing.T) {
	p := newProcess(t)
	p.rollOut(podReady)
	paused := p.deployment()
	paused.Spec.Paused = true
	if err := p.Update(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
	p.edit(withImage("nginx:other"))
	p.rollOut(podReady, func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 })
	degraded := p.condition(v1alpha2.ConditionDegraded)
	if degraded.Reason != v1alpha2.ReasonDeploymentPaused || !strings.Contains(degraded.Message, "rollout resume deployment/web") {
		t.Errorf("Degraded %+v", degraded)
	}
}

// TestStartOnOlderView verifies that a process that starts with a stale object writes nothing.
func TestStartOnOlderView(t *testing.T) {
	p := newProcess(t)
	p.edit(fixture.OnPort(8081))
	old := p.object()
	p.edit(fixture.OnPort(8082))
	p.rollOut(podReady)

	p.reconciler.Applier = NewApplier(p, p, func(string, apply.Verb) {})
	p.writes = nil
	result, err := p.reconciler.Reconcile(t.Context(), old)
	if err != nil || !result.Requeue { //nolint:staticcheck // see Reconcile
		t.Errorf("result %+v, %v", result, err)
	}
	if len(p.writes) > 0 {
		t.Errorf("writes %v", p.writes)
	}
	if _, err := p.reconciler.Reconcile(t.Context(), p.object()); err != nil {
		t.Error(err)
	}
}
