package e2e

// Changes of children by other clients, and obstacles for an instance.
//
//   - The operator recreates each deleted child, and the Pods come back. The instance is ready
//     again and serves.
//   - The operator restores declared fields: the replicas of the Deployment, and the selector of
//     the Service without an additional key. The annotation of `kubectl rollout restart` stays.
//   - A quota, and a Pod that no node can run, show in the condition Degraded and as an Event. The
//     instance recovers once they are gone.

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// restoreLimit bounds the time until a declared field is restored. The operator watches its
// children, so the restore is almost immediate.
const restoreLimit = 10 * time.Second

func testChildren(t *testing.T) {
	namespace := newNamespace(t, restricted)
	object := newInstance(t, namespace, "web", 2)
	for _, kind := range []string{"Service", "ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Deployment"} {
		children, err := childrenOf(t.Context(), object)
		must(t, err)
		child := children[kind]
		if child == nil {
			fatal(t, namespace, "there is no %s", kind)
		}
		must(t, suite.admin.Delete(t.Context(), child, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		took := waitFor(t, namespace, kind+" to come back", patience, func(ctx context.Context) error {
			children, err := childrenOf(ctx, object)
			if err != nil {
				return err
			}
			back := children[kind]
			if back == nil || back.GetUID() == child.GetUID() || back.GetName() != child.GetName() {
				return fmt.Errorf("it is not back: %v", back)
			}
			return ready(ctx, object)
		})
		t.Logf("FIGURE %s deleted: ready again after %s", kind, seconds(took))
		// A new Service has a new address, which clients find by name.
		serviceServes(t, namespace, "web", 8080)
	}
	pods := uidsOf(t, object)
	must(t, suite.admin.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace),
		client.MatchingLabels(wellknown.Selector("web"))))
	waitForNewPods(t, object, pods)
	serviceServes(t, namespace, "web", 8080)

	// While a change is blocked, the operator recreates the operands as they were applied last.
	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "missing"}}
	})
	waitForDegraded(t, object, v1alpha2.ReasonReferenceNotFound)
	before := deploymentOf(t, object)
	must(t, suite.admin.Delete(t.Context(), before.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	waitFor(t, namespace, "the Deployment of the blocked object to come back", patience, func(ctx context.Context) error {
		after := &appsv1.Deployment{}
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), after); err != nil {
			return err
		}
		if after.UID == before.UID || after.Status.ReadyReplicas != 2 {
			return fmt.Errorf("deleted %s, found %s with %d ready replicas", before.UID, after.UID, after.Status.ReadyReplicas)
		}
		return nil
	})
	serviceServes(t, namespace, "web", 8080)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Content = nil })
	waitForReady(t, object)
}

func testDrift(t *testing.T) {
	namespace := newNamespace(t, restricted)
	object := newInstance(t, namespace, "web", 1)

	kubectl(t, "scale", "deployment", "web", "-n", namespace, "--replicas=3")
	hasReplicas := func(ctx context.Context, want int32) error {
		deployment := &appsv1.Deployment{}
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), deployment); err != nil {
			return err
		}
		if declared := ptr.Deref(deployment.Spec.Replicas, -1); declared != want || deployment.Status.ReadyReplicas != want {
			return fmt.Errorf("the Deployment declares %d replicas and has %d", declared, deployment.Status.ReadyReplicas)
		}
		return ready(ctx, object)
	}
	waitFor(t, namespace, "spec.replicas to be restored", patience, func(ctx context.Context) error { return hasReplicas(ctx, 1) })

	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	update(t, service, func(s *corev1.Service) {
		s.Labels[wellknown.LabelPartOf] = "something-else"
		s.Labels["team"] = "web"
		s.Spec.Selector[wellknown.LabelInstance] = "another"
		s.Spec.Selector["team"] = "nobody"
	})
	took := waitFor(t, namespace, "the Service to be restored", restoreLimit, func(ctx context.Context) error {
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
			return err
		}
		selector := service.Spec.Selector
		if service.Labels[wellknown.LabelPartOf] != wellknown.OperatorName ||
			selector[wellknown.LabelInstance] != "web" || selector["team"] != "" {
			return fmt.Errorf("labels %v, selector %v", service.Labels, service.Spec.Selector)
		}
		return nil
	})
	t.Logf("FIGURE Service changed: restored after %s", seconds(took))
	if service.Labels["team"] != "web" {
		t.Errorf("the restore took a label away that is not the operator's: %v", service.Labels)
	}
	serviceServes(t, namespace, "web", 8080)

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = ptr.To[int32](2) })
	waitFor(t, namespace, "what the object declares", patience, func(ctx context.Context) error { return hasReplicas(ctx, 2) })

	const restartedAt = "kubectl.kubernetes.io/restartedAt"
	pods := uidsOf(t, object)
	kubectl(t, "rollout", "restart", "deployment/web", "-n", namespace)
	at := deploymentOf(t, object).Spec.Template.Annotations[restartedAt]
	waitForNewPods(t, object, pods)
	holds(t, namespace, "the restart was taken back", 2*time.Second, func(ctx context.Context) error {
		deployment := &appsv1.Deployment{}
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), deployment); err != nil {
			return err
		}
		if now := deployment.Spec.Template.Annotations[restartedAt]; at == "" || now != at {
			return fmt.Errorf("annotation %s was %q and is %q", restartedAt, at, now)
		}
		return nil
	})
}

func testQuota(t *testing.T) {
	namespace := newNamespace(t, restricted)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "no-pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
	must(t, suite.admin.Create(t.Context(), quota))
	object := newObject(namespace, "web", 1)
	must(t, suite.admin.Create(t.Context(), object))
	waitForDegraded(t, object, v1alpha2.ReasonQuotaExceeded)
	must(t, suite.admin.Delete(t.Context(), quota))
	waitForRecovery(t, object)
	// Other tests stop the leader, which may lose Events. No test of this group does.
	waitFor(t, namespace, "the Event about the recovery", patience, func(ctx context.Context) error {
		return hasEvent(ctx, object, corev1.EventTypeNormal, "Recovered")
	})
}

// testUnschedulable creates a LimitRange that adds a request which no node can satisfy, for a
// resource that the operator does not request.
func testUnschedulable(t *testing.T) {
	namespace := newNamespace(t, restricted)
	limits := &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "too-much"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type:           corev1.LimitTypeContainer,
			Default:        corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("900Ti")},
			DefaultRequest: corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("900Ti")},
		}}},
	}
	must(t, suite.admin.Create(t.Context(), limits))
	object := newObject(namespace, "web", 1)
	must(t, suite.admin.Create(t.Context(), object))
	waitForDegraded(t, object, v1alpha2.ReasonUnschedulable)
	must(t, suite.admin.Delete(t.Context(), limits))
	// The Pod has the request of the LimitRange. Only a new Pod is without it.
	must(t, suite.admin.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace)))
	waitForRecovery(t, object)
}

// waitForRecovery waits until a degraded object is ready, and its condition Degraded is False.
func waitForRecovery(t *testing.T, object *v1alpha2.NginxOperator) {
	t.Helper()
	waitFor(t, object.Namespace, object.Name+" to recover", patience, func(ctx context.Context) error {
		if err := ready(ctx, object); err != nil {
			return err
		}
		return hasCondition(ctx, object, v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)
	})
}
