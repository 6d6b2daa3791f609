package integration

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestPausedWithAnAutoscaler verifies that replicas set by an autoscaler do not count as a change
// that the pause blocks, no matter which of the two came first.
func TestPausedWithAnAutoscaler(t *testing.T) {
	t.Parallel()
	for name, pausedFirst := range map[string]bool{"paused, then scaled": true, "scaled, then paused": false} {
		t.Run(name, func(t *testing.T) {
			namespace, object, first := newWeb(t, func(s *v1alpha2.NginxOperatorSpec) {
				s.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 9}
			})
			deployment := first.deployment
			pause := func() {
				update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused = true })
				waitForCondition(t, namespace, "web", v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonPaused)
			}
			scale := func() {
				body := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 4}}
				options := []client.SubResourceUpdateOption{client.WithSubResourceBody(body), client.FieldOwner("kube-controller-manager")}
				must(t, suite.admin.SubResource("scale").Update(t.Context(), deployment, options...))
				waitForWeb(t, namespace, func(got children) error {
					if *got.deployment.Spec.Replicas != 4 {
						return errors.New("not scaled")
					}
					return nil
				})
			}
			if pausedFirst {
				rollOut(t, namespace, "web")
				pause()
				scale()
			} else {
				scale()
				rollOut(t, namespace, "web")
				pause()
			}
			rollOut(t, namespace, "web")
			waitForStatus(t, namespace, "web", func(found *v1alpha2.NginxOperator) error {
				if found.Status.ReadyReplicas != 4 || !isReady(found) || len(found.Status.BlockedBy) != 0 {
					return fmt.Errorf("status %+v", found.Status)
				}
				return nil
			})
			if got := must1(childrenOf(t.Context(), namespace, "web"))(t); *got.deployment.Spec.Replicas != 4 {
				t.Errorf("%d replicas", *got.deployment.Spec.Replicas)
			}
		})
	}
}

// TestStatusWithoutAService verifies that the status lists no missing objects if a quota prevents
// the creation of the Service.
func TestStatusWithoutAService(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceServices: *resourceQuantity("0")}},
	}
	create(t, quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
	must(t, suite.admin.Status().Update(t.Context(), quota))
	create(t, newInstance(namespace, "web"))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonQuotaExceeded)
	status := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status
	var kinds []string
	for _, related := range status.RelatedObjects {
		kinds = append(kinds, related.Kind)
	}
	if status.URL != "" || status.Image != "" || !slices.Equal(kinds, []string{"ConfigMap", "NetworkPolicy"}) {
		t.Errorf("url %q, image %q, objects %+v", status.URL, status.Image, status.RelatedObjects)
	}
}

// TestOneStatusWithoutReplicas verifies that an instance with zero replicas is Ready with its first
// status update, and that no Event repeats it.
func TestOneStatusWithoutReplicas(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	audited := len(audit(t))
	createWeb(t, namespace, func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](0) })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonScaledToZero)
	rollOut(t, namespace, "web")
	waitForMarker(t, namespace)
	if n := writesOf(t, audited, namespace); n["nginxoperators/status"] != 1 || n["events/"] != 0 {
		t.Errorf("writes %v", n)
	}
}
