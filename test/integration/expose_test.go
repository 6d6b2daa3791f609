package integration

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// exposedAs returns a spec.expose with an Ingress for a host, with TLS.
func exposedAs(host string) *v1alpha2.Expose {
	return &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{Hosts: []v1alpha2.IngressHost{{Host: host, TLSSecretName: "web"}}}}
}

// newExposed creates an object with an Ingress and completes its rollout.
func newExposed(t *testing.T, namespace string) (*v1alpha2.NginxOperator, children) {
	t.Helper()
	object := newInstance(namespace, "web")
	object.Spec.Expose = exposedAs("shop.example.com")
	serve(t, object)
	return object, must1(childrenOf(t.Context(), namespace, "web"))(t)
}

// writeAddress writes the Ingress status like an Ingress controller.
func writeAddress(t *testing.T, namespace string, points ...networkingv1.IngressLoadBalancerIngress) {
	t.Helper()
	waitFor(t, func() error {
		ingress := must1(childrenOf(t.Context(), namespace, "web"))(t).ingress
		ingress.Status.LoadBalancer.Ingress = points
		return suite.admin.Status().Update(t.Context(), ingress)
	})
}

func waitForURL(t *testing.T, namespace, want string) {
	t.Helper()
	waitFor(t, func() error {
		object, err := waitForStatusOnce(t.Context(), namespace, "web")
		if err == nil && object.Status.URL != want {
			err = fmt.Errorf("url %s, want %s", object.Status.URL, want)
		}
		return err
	})
}

// backendOf returns the number of the Service port that the Ingress references.
func backendOf(ingress *networkingv1.Ingress) int32 {
	return ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number
}

// TestIngress verifies that the status lists the Ingress, and its host after a controller has
// written an address. The operator does not correct the controller's changes. Without spec.expose,
// the operator deletes the Ingress.
func TestIngress(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object, before := newExposed(t, namespace)
	inside := fmt.Sprintf("http://web.%s.svc:8080", namespace)
	waitForURL(t, namespace, inside)
	isIngress := func(related v1alpha2.RelatedObject) bool {
		return related == v1alpha2.RelatedObject{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Name: "web"}
	}
	if status := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status; !slices.ContainsFunc(status.RelatedObjects, isIngress) {
		t.Errorf("related objects %v", status.RelatedObjects)
	}

	audited := len(audit(t))
	update(t, before.ingress, func(o *networkingv1.Ingress) {
		o.Annotations["controller.example.com/state"], o.Finalizers = "synced", []string{"controller.example.com/cleanup"}
	})
	writeAddress(t, namespace, networkingv1.IngressLoadBalancerIngress{Hostname: "lb.example.com"})
	waitForURL(t, namespace, "https://shop.example.com")
	waitForMarker(t, namespace)
	if n := withoutEvents(writesOf(t, audited, namespace)); !cmp.Equal(n, map[string]int{"nginxoperators/status": 1}) {
		t.Errorf("what the controller wrote costs %v", n)
	}
	if got := must1(childrenOf(t.Context(), namespace, "web"))(t).ingress; got.Annotations["controller.example.com/state"] != "synced" {
		t.Error("the annotation of the controller is gone")
	}
	writeAddress(t, namespace)
	waitForURL(t, namespace, inside)

	// A pause blocks a deletion like any other change. The deletion then waits for the controller's
	// finalizer.
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused, o.Spec.Expose = true, nil })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonPaused)
	paused := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t)
	want := []v1alpha2.Blocker{{Reason: v1alpha2.ReasonPaused, Message: `spec.paused blocks: the deletion of Ingress "web"`}}
	if diff := cmp.Diff(want, paused.Status.BlockedBy); diff != "" {
		t.Errorf("blockedBy (-want +got):\n%s", diff)
	}
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused = false })
	waitFor(t, func() error {
		if got := must1(childrenOf(t.Context(), namespace, "web"))(t).ingress; got != nil && got.DeletionTimestamp.IsZero() {
			return errors.New("the Ingress is there")
		}
		return nil
	})
	update(t, before.ingress, func(o *networkingv1.Ingress) { o.Finalizers = nil })
	rollOutUntilReady(t, namespace, "web")
	requireSamePods(t, before, waitForChildren(t, namespace, "web"))
}

// TestIngressWhileBlocked verifies that the operator restores the last applied Ingress while
// changes are blocked.
func TestIngressWhileBlocked(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object, before := newExposed(t, namespace)
	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Expose = exposedAs("other.example.com")
		o.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "missing"}}
	})
	deleteWhileBlocked(t, namespace, before.ingress,
		func(now children) (*networkingv1.Ingress, bool) { return now.ingress, now.ingress != nil },
		func(ingress *networkingv1.Ingress) any { return ingress.Spec })
}

// TestIngressOfOthers verifies that the operator does not touch an Ingress that it does not own.
// The status reports the conflict, and all other children exist.
func TestIngressOfOthers(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	theirs := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
			Name: "theirs", Port: networkingv1.ServiceBackendPort{Number: 80},
		}}},
	}
	create(t, theirs)
	object := newInstance(namespace, "web")
	object.Spec.Expose = exposedAs("shop.example.com")
	create(t, object)
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonNameConflict)
	got := waitForChildren(t, namespace, "web")
	if diff := cmp.Diff(theirs, got.ingress); diff != "" {
		t.Errorf("the foreign Ingress was changed:\n%s", diff)
	}
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Expose = nil })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)
	waitForMarker(t, namespace)
	update(t, theirs, func(*networkingv1.Ingress) {}) // fails if the Ingress is gone
	if !theirs.DeletionTimestamp.IsZero() {
		t.Error("the Ingress of somebody else is being deleted")
	}
}

// TestIngressFollowsReadyPods verifies that the Ingress moves to the new first port only after a
// Pod is ready on it. Another port name does not change the Ingress.
func TestIngressFollowsReadyPods(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := newInstance(namespace, "web")
	object.Spec.Expose = exposedAs("shop.example.com")
	create(t, object)
	waitForChildren(t, namespace, "web")
	ready := func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		must(t, suite.admin.Status().Update(t.Context(), pod))
		waitUntilSeen(t, pod)
	}
	old := newRevision(t, namespace, "web-a")
	ready(old.pod)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Ports = []v1alpha2.Port{{Name: "web", Port: 9090}} })
	waitForShape(t, namespace, shape{
		map[string]string{"web": "9090 http web", "http": "8080 http http"},
		[]string{"web", "http", "health"},
		map[string]int32{"web": 9090, "health": 18080},
	})
	waitForMarker(t, namespace)
	if got := backendOf(must1(childrenOf(t.Context(), namespace, "web"))(t).ingress); got != 8080 {
		t.Errorf("the Ingress asks for port %d, where no Pod is ready", got)
	}
	ready(newRevision(t, namespace, "web-b").pod)
	waitFor(t, func() error {
		if got := backendOf(must1(childrenOf(t.Context(), namespace, "web"))(t).ingress); got != 9090 {
			return fmt.Errorf("the Ingress asks for port %d", got)
		}
		return nil
	})
	audited := len(audit(t))
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Ports[0].Name = "renamed" })
	waitForShape(t, namespace, shape{
		map[string]string{"renamed": "9090 http web", "http": "8080 http http"},
		[]string{"web", "http", "health"},
		map[string]int32{"web": 9090, "health": 18080},
	})
	if n := writesOf(t, audited, namespace)["ingresses/"]; n != 0 {
		t.Errorf("another name costs %d writes of the Ingress", n)
	}
}
