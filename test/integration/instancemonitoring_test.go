package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

// monitored returns a spec.monitoring that enables a PodMonitor and alerts.
func monitored() *v1alpha2.Monitoring {
	labels := map[string]string{"release": "prometheus"}
	return &v1alpha2.Monitoring{
		PodMonitor: &v1alpha2.PodMonitor{Labels: labels, Interval: "15s"}, Alerts: &v1alpha2.Alerts{Labels: labels},
	}
}

// TestMonitoringOfInstances verifies that the operator creates the monitoring objects, restores
// them even while changes are blocked, and deletes them when monitoring is disabled.
func TestMonitoringOfInstances(t *testing.T) {
	t.Parallel()
	namespace, object, plain := newWeb(t, nil)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Monitoring = monitored() })
	first := waitForChildren(t, namespace, "web")
	if got := first.deployment.Spec.Template.Spec.InitContainers; len(got) != 1 || got[0].Image != harness.ExporterImage {
		t.Errorf("containers beside nginx: %+v", got)
	}
	if got := first.policy.Spec.Ingress[0].Ports; len(got) != 3 || got[1].Port.IntVal != 9113 {
		t.Errorf("the NetworkPolicy lets in %+v", got)
	}
	for _, child := range []client.Object{first.monitor, first.rule} {
		if child.GetLabels()["release"] != "prometheus" {
			t.Errorf("labels of %T: %v", child, child.GetLabels())
		}
	}
	waitForMarker(t, namespace)

	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "missing"}}
	})
	update(t, first.monitor.DeepCopy(), func(o *monitoringv1.PodMonitor) { o.Spec.PodMetricsEndpoints[0].Interval = "1h" })
	update(t, first.rule.DeepCopy(), func(o *monitoringv1.PrometheusRule) { o.Spec.Groups[0].Name = "other" })
	waitFor(t, func() error {
		now := must1(childrenOf(t.Context(), namespace, "web"))(t)
		if diff := cmp.Diff(first.monitor.Spec, now.monitor.Spec) + cmp.Diff(first.rule.Spec, now.rule.Spec); diff != "" {
			return fmt.Errorf("(-before +now):\n%s", diff)
		}
		return nil
	})
	deleteWhileBlocked(t, namespace, first.rule, func(now children) (*monitoringv1.PrometheusRule, bool) { return now.rule, now.rule != nil },
		func(rule *monitoringv1.PrometheusRule) any { return rule.Spec })

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Content, o.Spec.Monitoring.Enabled = nil, ptr.To(false) })
	waitFor(t, func() error {
		got := must1(childrenOf(t.Context(), namespace, "web"))(t)
		if got.monitor != nil || got.rule != nil {
			return fmt.Errorf("there are still %v and %v", got.monitor, got.rule)
		}
		if diff := cmp.Diff(plain.deployment.Spec, got.deployment.Spec); diff != "" {
			return fmt.Errorf("the Deployment (-before +now):\n%s", diff)
		}
		return nil
	})
}

// TestThePrometheusOperatorComesAndGoes verifies the operator without and with the Prometheus
// Operator's CRDs. Without them, the status reports the missing API, and all
// other children exist. With them, the operator does not touch a PrometheusRule that it does not
// own.
func TestThePrometheusOperatorComesAndGoes(t *testing.T) {
	crds := []string{harness.PodMonitorCRD, harness.PrometheusRuleCRD}
	install := removeKinds(t, crds...)
	missing := func(field, crd, kind string) v1alpha2.Blocker {
		return v1alpha2.Blocker{Reason: v1alpha2.ReasonAPIMissing, Message: fmt.Sprintf("spec.monitoring.%s: CustomResourceDefinition %q does "+
			"not exist, is not established, or is being deleted, so there is no %s. Install the Prometheus Operator, or remove the field",
			field, crd, kind)}
	}
	namespace := newNamespace(t)
	createWeb(t, namespace, func(s *v1alpha2.NginxOperatorSpec) { s.Monitoring = monitored() })
	waitForBlockers(t, namespace, missing("podMonitor", crds[0], "PodMonitor"), missing("alerts", crds[1], "PrometheusRule"))
	makeReady(t, namespace, "web")

	install()
	waitForBlockers(t, namespace)
	waitForChildren(t, namespace, "web")
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)

	theirs := &monitoringv1.PrometheusRule{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}}
	create(t, theirs)
	other := newInstance(namespace, "other")
	other.Spec.Monitoring = monitored()
	create(t, other)
	waitForCondition(t, namespace, "other", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonNameConflict)
	got := theirs.DeepCopy()
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(theirs), got))
	if diff := cmp.Diff(theirs, got); diff != "" {
		t.Errorf("the foreign PrometheusRule was changed:\n%s", diff)
	}
}
