package integration

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// newAutoscaled returns an object that scales between two and nine Pods.
func newAutoscaled(namespace string) *v1alpha2.NginxOperator {
	object := newInstance(namespace, "web")
	object.Spec.Autoscaling = &v1alpha2.Autoscaling{MinReplicas: ptr.To[int32](2), MaxReplicas: 9}
	return object
}

// scaleAs sets the replicas of a Deployment like the HorizontalPodAutoscaler controller.
func scaleAs(t *testing.T, deployment *appsv1.Deployment, n int32) {
	t.Helper()
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: n}}
	must(t, suite.admin.SubResource("scale").Update(t.Context(), deployment,
		client.WithSubResourceBody(scale), client.FieldOwner("kube-controller-manager")))
}

// waitForReplicas waits until the Deployment has n replicas, a PodDisruptionBudget exists only for
// more than one replica, and a HorizontalPodAutoscaler exists only if autoscaled is true.
func waitForReplicas(t *testing.T, namespace string, n int32, autoscaled bool) children {
	t.Helper()
	var out children
	waitFor(t, func() (err error) {
		out, err = childrenOf(t.Context(), namespace, "web")
		if err != nil || out.deployment == nil || *out.deployment.Spec.Replicas != n || (out.budget != nil) != (n > 1) ||
			(out.autoscaler != nil) != autoscaled {
			return errors.Join(fmt.Errorf("want %d replicas, autoscaler %t, got %+v", n, autoscaled, out), err)
		}
		return nil
	})
	return out
}

// TestAutoscaling verifies that the operator creates and restores the HorizontalPodAutoscaler. The
// replicas that it sets stay while other fields change and while the operator restarts. Without
// spec.autoscaling, spec.replicas applies again.
func TestAutoscaling(t *testing.T) {
	namespace := newNamespace(t)
	object := newAutoscaled(namespace)
	create(t, object)
	got := waitForReplicas(t, namespace, 2, true)
	metrics := func(target int32) []autoscalingv2.MetricSpec {
		return []autoscalingv2.MetricSpec{{Type: "ContainerResource", ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
			Name: "cpu", Container: "nginx", Target: autoscalingv2.MetricTarget{Type: "Utilization", AverageUtilization: ptr.To(target)},
		}}}
	}
	if diff := cmp.Diff(metrics(80), got.autoscaler.Spec.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if target := got.autoscaler.Spec.ScaleTargetRef; target.Kind != "Deployment" || target.Name != "web" ||
		!metav1.IsControlledBy(got.autoscaler, object) {
		t.Errorf("the autoscaler targets %+v, and its owners are %v", target, got.autoscaler.OwnerReferences)
	}
	waitFor(t, func() error {
		found, err := waitForStatusOnce(t.Context(), namespace, "web")
		want := v1alpha2.RelatedObject{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler", Name: "web"}
		if err == nil && !slices.Contains(found.Status.RelatedObjects, want) {
			err = fmt.Errorf("related objects %+v", found.Status.RelatedObjects)
		}
		return err
	})
	must(t, suite.admin.Delete(t.Context(), got.autoscaler))
	got = waitForReplicas(t, namespace, 2, true)

	scaleAs(t, got.deployment, 7)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Replicas, o.Spec.ForceRedeploy = ptr.To[int32](4), "pass" })
	waitForWeb(t, namespace, func(got children) error {
		if got.deployment.Spec.Template.Annotations[wellknown.AnnotationForceRedeploy] != "pass" {
			return errors.New("not applied yet")
		}
		return nil
	})
	waitForReplicas(t, namespace, 7, true)
	must(t, suite.operator.KillLeader(suite.admin))
	startNextOperator(t)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Autoscaling.MaxReplicas = 5 })
	waitForReplicas(t, namespace, 5, true)

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Autoscaling = nil })
	got = waitForReplicas(t, namespace, 4, false)
	scaleAs(t, got.deployment, 6)
	waitForReplicas(t, namespace, 4, false)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = ptr.To[int32](1) })
	waitForReplicas(t, namespace, 1, false)
}

// TestAutoscalingOfWhatRuns verifies that an existing instance keeps its replicas and its Pods when
// autoscaling is enabled.
func TestAutoscalingOfWhatRuns(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := createWeb(t, namespace, func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](3) })
	before := waitForReplicas(t, namespace, 3, false)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 9} })
	after := waitForReplicas(t, namespace, 3, true)
	if diff := cmp.Diff(before.deployment.Spec, after.deployment.Spec); diff != "" {
		t.Errorf("the Deployment (-before +after):\n%s", diff)
	}
}

// TestAutoscalingWhileBlocked verifies that replicas follow the autoscaler while a blocker or a
// pause stops other changes. Replicas set by the autoscaler do not count as a blocked change.
func TestAutoscalingWhileBlocked(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := newAutoscaled(namespace)
	create(t, object)
	got := waitForReplicas(t, namespace, 2, true)
	newRevision(t, namespace, "web-a")
	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "missing"}}
	})
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonReferenceNotFound)
	scaleAs(t, got.deployment, 4)
	waitForReplicas(t, namespace, 4, true)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Autoscaling.MinReplicas = ptr.To[int32](6) })
	waitForReplicas(t, namespace, 6, true)
	must(t, suite.admin.Delete(t.Context(), got.autoscaler))
	waitForReplicas(t, namespace, 6, true)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Content = nil })
	makeReady(t, namespace, "web")

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused = true })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonPaused)
	scaleAs(t, got.deployment, 9)
	rollOut(t, namespace, "web")
	waitForStatus(t, namespace, "web", func(found *v1alpha2.NginxOperator) error {
		if found.Status.ReadyReplicas != 9 || !isReady(found) || len(found.Status.BlockedBy) != 0 {
			return fmt.Errorf("status %+v", found.Status)
		}
		return nil
	})
}
