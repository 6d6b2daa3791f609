package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestNameConflict verifies that the operator does not change an object that has the name of a
// child but another owner, with or without the operator's labels. The status and an Event name the
// object.
func TestNameConflict(t *testing.T) {
	t.Parallel()
	for _, labels := range []map[string]string{nil, {"app.kubernetes.io/managed-by": "nginx-operator", "app.kubernetes.io/instance": "web"}} {
		for _, foreign := range []client.Object{
			&appsv1.Deployment{Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "theirs"}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "theirs"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "theirs", Image: "theirs"}}},
				},
			}},
			&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}},
			&networkingv1.NetworkPolicy{},
			&policyv1.PodDisruptionBudget{},
			&autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "theirs"},
				MaxReplicas:    2,
			}},
		} {
			kind := strings.TrimPrefix(fmt.Sprintf("%T", foreign), "*")
			t.Run(fmt.Sprintf("%s/ours=%t", kind, labels != nil), func(t *testing.T) {
				namespace := newNamespace(t)
				foreign.SetNamespace(namespace)
				foreign.SetName("web")
				foreign.SetLabels(labels)
				create(t, foreign)
				object := newInstance(namespace, "web")
				object.Spec.Replicas = ptr.To[int32](2)
				object.Spec.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 3}
				create(t, object)
				degraded := waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonNameConflict)
				ready := v1alpha2.ReasonNameConflict
				switch foreign.(type) {
				case *policyv1.PodDisruptionBudget, *autoscalingv2.HorizontalPodAutoscaler:
					ready = v1alpha2.ReasonRolloutInProgress // Pods do not depend on this child
				}
				waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, ready)
				if name := kind[strings.Index(kind, ".")+1:]; !strings.Contains(degraded.Message, name+` "web"`) {
					t.Errorf("the message does not name the %s: %s", name, degraded.Message)
				}
				waitForEvent(t, namespace, corev1.EventTypeWarning, v1alpha2.ReasonNameConflict, 1)
				now := foreign.DeepCopyObject().(client.Object)
				must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(foreign), now))
				if diff := cmp.Diff(foreign, now); diff != "" {
					t.Errorf("the foreign object was changed:\n%s", diff)
				}
			})
		}
	}
}

// TestChildOfAnotherObject verifies that a child of another NginxOperator is a conflict as well,
// and that the message names its owner.
func TestChildOfAnotherObject(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	foreign := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "operator.example.com/v1alpha1", Kind: "NginxOperator", Name: "other", UID: "1-2-3", Controller: ptr.To(true),
		}}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
	}
	create(t, foreign)
	create(t, newInstance(namespace, "web"))
	degraded := waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonNameConflict)
	if !strings.Contains(degraded.Message, `NginxOperator "other"`) {
		t.Errorf("the message does not name the owner: %s", degraded.Message)
	}
}

// TestCreatedAgain verifies that an object that is deleted and created again under the same name
// waits for the garbage collector to delete the first object's children. This is not a conflict.
// The object then gets its own children. The test itself plays the garbage collector.
func TestCreatedAgain(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := newInstance(namespace, "web")
	create(t, object)
	first := waitForChildren(t, namespace, "web")
	must(t, suite.admin.Delete(t.Context(), object))
	create(t, newInstance(namespace, "web"))
	waiting := waitForCondition(t, namespace, "web", v1alpha2.ConditionProgressing, metav1.ConditionTrue, v1alpha2.ReasonRolloutInProgress)
	if !strings.Contains(waiting.Message, "an earlier object of this name") {
		t.Errorf("Progressing says %q", waiting.Message)
	}
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)
	for _, child := range []client.Object{first.deployment, first.service, first.policy, &first.configMaps[0]} {
		must(t, suite.admin.Delete(t.Context(), child, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	must(t, suite.admin.DeleteAllOf(t.Context(), &appsv1.ControllerRevision{}, client.InNamespace(namespace)))
	waitFor(t, func() error {
		second, err := childrenOf(t.Context(), namespace, "web")
		if err != nil {
			return err
		}
		if second.deployment == nil || second.deployment.UID == first.deployment.UID ||
			second.service == nil || second.policy == nil || len(second.configMaps) != 1 {
			return fmt.Errorf("children are missing: %+v", second)
		}
		return nil
	})
}

// TestQuota verifies that the status reports a rejection by the API server with its reason, and
// recovers when the cause is gone.
func TestQuota(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/deployments.apps": *resourceQuantity("0")}},
	}
	create(t, quota)
	// Without kube-controller-manager, the test has to set the quota's status.
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
	must(t, suite.admin.Status().Update(t.Context(), quota))
	create(t, newInstance(namespace, "web"))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonQuotaExceeded)
	waitForEvent(t, namespace, corev1.EventTypeWarning, v1alpha2.ReasonQuotaExceeded, 1)
	must(t, suite.admin.Delete(t.Context(), quota))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)
	waitForEvent(t, namespace, corev1.EventTypeNormal, "Recovered", 1)
}

// waitForEvent waits for want Events of a reason and fails if there are more. It counts again after
// the operator has reconciled a marker.
func waitForEvent(t *testing.T, namespace, eventType, reason string, want int) {
	t.Helper()
	count := func() (int, error) {
		list := &corev1.EventList{}
		err := suite.admin.List(t.Context(), list, client.InNamespace(namespace))
		n := 0
		for i := range list.Items {
			if list.Items[i].Type == eventType && list.Items[i].Reason == reason && list.Items[i].InvolvedObject.Name != markerName {
				n += max(1, int(list.Items[i].Count))
			}
		}
		return n, err
	}
	waitFor(t, func() error {
		if n, err := count(); err != nil || n < want {
			return errors.Join(fmt.Errorf("%d %s Events of reason %s, want %d", n, eventType, reason, want), err)
		}
		return nil
	})
	waitForMarker(t, namespace)
	if n, err := count(); err != nil || n != want {
		t.Errorf("%d %s Events of reason %s, want %d (%v)", n, eventType, reason, want, err)
	}
}
