package nginxoperator

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

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
