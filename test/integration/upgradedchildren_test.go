package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestChildrenOf070 verifies that children as 0.7.0 declared them get the ports, protocols, and
// deadline of this release, and that this replaces no Pod. An appProtocol that the operator has not
// declared stays.
func TestChildrenOf070(t *testing.T) {
	t.Parallel()
	namespace, _, before := newReadyWeb(t, nil)
	declareAs070(t, before)
	waitForSpecs(t, namespace, before)

	update(t, before.service.DeepCopy(), func(s *corev1.Service) { s.Spec.Ports[0].AppProtocol = ptr.To("http") })
	waitForMarker(t, namespace)
	if now := must1(childrenOf(t.Context(), namespace, "web"))(t); ptr.Deref(now.service.Spec.Ports[0].AppProtocol, "") != "http" {
		t.Error("the operator removed the appProtocol of another client")
	}
}

// TestPausedChildrenOf070 verifies that a paused object stays Ready if only this release declares
// its children differently, and that it gets the new declarations after the pause. A change by
// another client is reported.
func TestPausedChildrenOf070(t *testing.T) {
	t.Parallel()
	namespace, object, before := newReadyWeb(t, nil)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused = true })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonPaused)
	declareAs070(t, before)
	waitForMarker(t, namespace)
	rollOutUntilReady(t, namespace)
	waitForNoBlocker(t, namespace)

	update(t, before.service.DeepCopy(), func(s *corev1.Service) { s.Spec.Ports[0].AppProtocol = ptr.To("h2c") })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonPaused)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused = false })
	waitForSpecs(t, namespace, before)
}

// declareAs070 gives the children of an instance the values that 0.7.0 declared, and the records of
// these declarations.
func declareAs070(t *testing.T, before children) {
	t.Helper()
	// declared changes the record of the last declaration of a child.
	declared := func(child client.Object, oldNew ...string) {
		t.Helper()
		record := child.GetAnnotations()[wellknown.AnnotationLastDeclared]
		earlier := strings.NewReplacer(oldNew...).Replace(record)
		if earlier == record {
			t.Fatalf("the record of the %T has none of %q: %s", child, oldNew, record)
		}
		child.GetAnnotations()[wellknown.AnnotationLastDeclared] = earlier
	}
	update(t, before.service.DeepCopy(), func(s *corev1.Service) {
		declared(s, `{"name":"http",`, `{"appProtocol":"http","name":"http",`)
		s.Spec.Ports[0].AppProtocol = ptr.To("http")
	})
	update(t, before.policy.DeepCopy(), func(p *networkingv1.NetworkPolicy) {
		declared(p, `"port":8080`, `"port":"http"`, `"port":18080`, `"port":"health"`)
		for i, name := range []string{"http", "health"} {
			p.Spec.Ingress[0].Ports[i].Port = ptr.To(intstr.FromString(name))
		}
	})
	update(t, before.deployment.DeepCopy(), func(d *appsv1.Deployment) {
		declared(d, `"progressDeadlineSeconds":600`, `"progressDeadlineSeconds":120`)
		d.Spec.ProgressDeadlineSeconds = ptr.To[int32](120)
	})
}

// waitForSpecs waits until the children of an instance have the specs, and the records, of before.
func waitForSpecs(t *testing.T, namespace string, before children) {
	t.Helper()
	waitForWeb(t, namespace, func(now children) error {
		diff := cmp.Diff(before.service.Spec, now.service.Spec) + cmp.Diff(before.policy.Spec, now.policy.Spec) +
			cmp.Diff(before.deployment.Spec, now.deployment.Spec) + cmp.Diff(before.records(), now.records())
		if diff != "" {
			return fmt.Errorf("children (-before +now):\n%s", diff)
		}
		return nil
	})
}
