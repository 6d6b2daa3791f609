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
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestNameConflict verifies that the operator does not change an object that has the name of a
// child but another owner, with or without the operator's labels. The status and an Event name the
// object. If the instance needs no such child any more, the object still stays.
func TestNameConflict(t *testing.T) {
	t.Parallel()
	type spec = v1alpha2.NginxOperatorSpec
	backend := &networkingv1.IngressServiceBackend{Name: "theirs", Port: networkingv1.ServiceBackendPort{Number: 80}}
	for _, labels := range []map[string]string{nil, {"app.kubernetes.io/managed-by": "nginx-operator", "app.kubernetes.io/instance": "web"}} {
		for _, test := range []struct {
			foreign client.Object
			// set needs the child, and unset does not. Pods do not depend on an independent child.
			set, unset  func(*spec)
			independent bool
		}{
			{foreign: &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "theirs"}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "theirs"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "theirs", Image: "theirs"}}},
				},
			}}},
			{foreign: &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}},
			{
				foreign: &networkingv1.NetworkPolicy{},
				unset:   func(s *spec) { s.NetworkPolicy = &v1alpha2.NetworkPolicy{Mode: v1alpha2.NetworkPolicyNone} },
			},
			{
				foreign: &policyv1.PodDisruptionBudget{}, independent: true,
				set: func(s *spec) { s.Replicas = ptr.To[int32](2) }, unset: func(s *spec) { s.Replicas = ptr.To[int32](1) },
			},
			{
				foreign: &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
					ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "theirs"},
					MaxReplicas:    2,
				}}, independent: true,
				set: func(s *spec) { s.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 3} }, unset: func(s *spec) { s.Autoscaling = nil },
			},
			{
				foreign:     &networkingv1.Ingress{Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{Service: backend}}},
				independent: true,
				set:         func(s *spec) { s.Expose = exposedAs("shop.example.com") }, unset: func(s *spec) { s.Expose = nil },
			},
			{
				foreign: &gatewayv1.HTTPRoute{Spec: gatewayv1.HTTPRouteSpec{Hostnames: []gatewayv1.Hostname{"theirs.example.com"}}}, independent: true,
				set: func(s *spec) { s.Expose = routed("shop.example.com") }, unset: func(s *spec) { s.Expose = nil },
			},
		} {
			kind := strings.TrimPrefix(fmt.Sprintf("%T", test.foreign), "*")
			t.Run(fmt.Sprintf("%s/ours=%t", kind, labels != nil), func(t *testing.T) {
				t.Parallel()
				namespace, foreign := newNamespace(t), test.foreign.DeepCopyObject().(client.Object)
				foreign.SetNamespace(namespace)
				foreign.SetName("web")
				foreign.SetLabels(labels)
				create(t, foreign)
				object := newInstance(namespace, "web")
				if test.set != nil {
					test.set(&object.Spec)
				}
				create(t, object)
				degraded := waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonNameConflict)
				ready := v1alpha2.ReasonNameConflict
				if test.independent {
					ready = v1alpha2.ReasonRolloutInProgress
					waitForChildren(t, namespace, "web")
				}
				waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, ready)
				if name := kind[strings.Index(kind, ".")+1:]; !strings.Contains(degraded.Message, name+` "web"`) {
					t.Errorf("the message does not name the %s: %s", name, degraded.Message)
				}
				waitForEvent(t, namespace, corev1.EventTypeWarning, v1alpha2.ReasonNameConflict, 1)
				if test.unset != nil {
					update(t, object, func(o *v1alpha2.NginxOperator) { test.unset(&o.Spec) })
					waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)
					waitForMarker(t, namespace)
				}
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
	namespace, object, first := newWeb(t, nil)
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
	waitForWeb(t, namespace, func(second children) error {
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
