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
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

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

// TestContestedChild verifies that the status reports a child that another client keeps changing,
// and that one change is no contest.
func TestContestedChild(t *testing.T) {
	p := newProcess(t)
	p.rollOut(podReady)
	for i := range 6 {
		policy := read[networkingv1.NetworkPolicy](p, instance.Name)
		policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
		if err := p.Update(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		p.reconcile()
		if restored := read[networkingv1.NetworkPolicy](p, instance.Name); len(restored.Spec.Ingress[0].Ports) == 0 {
			t.Fatal("the NetworkPolicy is open")
		}
		degraded, ready := p.condition(v1alpha2.ConditionDegraded), p.condition(v1alpha2.ConditionReady)
		reported := degraded.Reason == v1alpha2.ReasonChildContested &&
			strings.Contains(degraded.Message, `keeps changing NetworkPolicy "web"`)
		if want := i+1 >= 5; reported != want || ready.Status != metav1.ConditionTrue {
			t.Errorf("after %d changes: %+v, %+v", i+1, degraded, ready)
		}
	}
	if blocked := p.status().BlockedBy; len(blocked) != 1 || blocked[0].Reason != v1alpha2.ReasonChildContested {
		t.Errorf("blocked by %+v", blocked)
	}
}

// TestMissingKind verifies that a declared child of an optional kind stays if the kind was not
// served at the election, but is served again. A child that is no longer declared goes.
func TestMissingKind(t *testing.T) {
	p := newProcess(t)
	delete(p.reconciler.Missing, "HTTPRoute")
	p.edit(fixture.Routed(v1alpha2.GatewayReference{Name: "gateway"}, "www.example.com"))
	read[gatewayv1.HTTPRoute](p, instance.Name)

	// The client of the test reads and deletes HTTPRoutes, whatever this says.
	p.reconciler.Missing["HTTPRoute"] = "not installed"
	p.reconcile()
	read[gatewayv1.HTTPRoute](p, instance.Name)

	delete(p.reconciler.Missing, "HTTPRoute")
	p.edit(func(s *v1alpha2.NginxOperatorSpec) { s.Expose = nil })
	if err := p.Get(t.Context(), instance, &gatewayv1.HTTPRoute{}); !apierrors.IsNotFound(err) {
		t.Errorf("the HTTPRoute that is no longer declared: %v", err)
	}
}

// TestOldViewOfAnInstance verifies that a new process whose view of the NginxOperators alone is old
// neither repeats a failed rollout nor removes the failure from the status.
func TestOldViewOfAnInstance(t *testing.T) {
	for name, paused := range map[string]bool{"a child differs": false, "only the status differs": true} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t)
			p.rollOut(podReady)
			p.edit(func(s *v1alpha2.NginxOperatorSpec) { s.Image = "nginx:other" })
			p.rollOut(podCrashing)
			p.rollOut(podReady)
			p.edit(func(s *v1alpha2.NginxOperatorSpec) { s.Paused = paused })
			current := p.object()
			if p.image() != fixture.Image || len(current.Status.FailedRevisions) == 0 {
				t.Fatalf("not rolled back: %s, %+v", p.image(), current.Status)
			}

			p.reconciler.Applier = NewApplier(p, p, func(string, apply.Verb) {})
			old := current.DeepCopy()
			old.Status.FailedRevisions, old.Status.Conditions = nil, nil
			result, err := p.reconciler.Reconcile(t.Context(), old)
			if err != nil || !result.Requeue { //nolint:staticcheck // see Reconcile
				t.Errorf("%+v, %v", result, err)
			}
			if p.image() != fixture.Image || !equality.Semantic.DeepEqual(p.status(), current.Status) {
				t.Errorf("image %s, status %+v", p.image(), p.status())
			}
			p.reconcile()
			if p.image() != fixture.Image || len(p.status().FailedRevisions) == 0 {
				t.Errorf("with the current view: image %s, status %+v", p.image(), p.status())
			}
		})
	}
}
