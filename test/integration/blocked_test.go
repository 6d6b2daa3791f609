package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestBlockedInstanceIsKept verifies that a blocker blocks the change and not the instance.
// Replicas follow spec.replicas, also after another client scales the Deployment. The operator
// restores a deleted Service, NetworkPolicy, or PodDisruptionBudget. It applies no part of the
// change.
func TestBlockedInstanceIsKept(t *testing.T) {
	t.Parallel()
	namespace, object, _ := newWeb(t, func(s *v1alpha2.NginxOperatorSpec) {
		s.Ports = []v1alpha2.Port{{Name: "http", Port: 8080}, {Name: "admin", Port: 9000}}
	})
	newRevision(t, namespace, "web-a")
	before := must1(childrenOf(t.Context(), namespace, "web"))(t)
	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Ports[1].Port = 9001
		o.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "missing"}}
	})
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonReferenceNotFound)
	scaledTo := func(n int32) {
		t.Helper()
		waitFor(t, func() error {
			got, err := childrenOf(t.Context(), namespace, "web")
			if err != nil || *got.deployment.Spec.Replicas != n || (got.budget != nil) != (n > 1) {
				return errors.Join(fmt.Errorf("%d replicas, want %d; PodDisruptionBudget: %t",
					*got.deployment.Spec.Replicas, n, got.budget != nil), err)
			}
			return nil
		})
	}
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = ptr.To[int32](3) })
	scaledTo(3)
	deployment := must1(childrenOf(t.Context(), namespace, "web"))(t).deployment
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
	must(t, suite.admin.SubResource("scale").Update(t.Context(), deployment, client.WithSubResourceBody(scale)))
	for _, child := range []client.Object{before.service, before.policy, must1(childrenOf(t.Context(), namespace, "web"))(t).budget} {
		must(t, suite.admin.Delete(t.Context(), child))
	}
	waitForShape(t, namespace, shapeOf(before))
	scaledTo(3)

	// A pause also stops the scaling.
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused, o.Spec.Replicas = true, ptr.To[int32](2) })
	waitFor(t, func() error { _, err := waitForStatusOnce(t.Context(), namespace, "web"); return err })
	scaledTo(3)
	if after := must1(childrenOf(t.Context(), namespace, "web"))(t); len(after.configMaps) != len(before.configMaps) {
		t.Errorf("there are %d ConfigMaps", len(after.configMaps))
	}
}

// TestBlockedChildrenAreRestored verifies that the operator restores deleted or changed children to
// the last applied state while a spec is blocked. This works after a restart of the operator, and
// if the ConfigMaps that the children were rendered from are gone. The operator reports a lost copy
// of these, and applies the next spec that is not blocked.
func TestBlockedChildrenAreRestored(t *testing.T) {
	namespace := newNamespace(t)
	sources := []client.Object{
		newConfigMap(namespace, "servers", map[string]string{"nginx.conf": servers}),
		newConfigMap(namespace, "pages", map[string]string{"index.html": "<p>hello</p>"}),
	}
	for _, source := range sources {
		create(t, source)
	}
	object := newInstance(namespace, "web")
	object.Spec.Replicas = ptr.To[int32](2)
	object.Spec.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "servers"}}
	object.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "pages"}}
	create(t, object)
	waitForChildren(t, namespace, "web")
	before := must1(childrenOf(t.Context(), namespace, "web"))(t)
	for _, source := range sources {
		must(t, suite.admin.Delete(t.Context(), source))
	}
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Image = "registry.example.com/nginx:other" })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonReferenceNotFound)
	if revisions := must1(revisionsOf(t.Context(), namespace))(t); len(revisions) != 1 {
		t.Fatalf("%d revisions", len(revisions))
	}
	must(t, suite.operator.KillLeader(suite.admin))
	startNextOperator(t)

	all := []client.Object{before.service, before.policy, before.deployment, before.budget}
	want := declaredIn(before)
	restored := func() error {
		got, err := childrenOf(t.Context(), namespace, "web")
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, declaredIn(got)); diff != "" {
			return fmt.Errorf("children (-before +now):\n%s", diff)
		}
		return nil
	}
	for _, child := range all {
		must(t, suite.admin.Delete(t.Context(), child.DeepCopyObject().(client.Object)))
	}
	waitFor(t, restored)
	damage := map[client.Object]string{
		&appsv1.Deployment{}:          `{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"example.com/nginx:damaged"}]}}}}`,
		&corev1.Service{}:             `{"spec":{"selector":{"app":"other"}}}`,
		&networkingv1.NetworkPolicy{}: `{"spec":{"ingress":[]}}`,
	}
	for child, patch := range damage {
		child.SetNamespace(namespace)
		child.SetName("web")
		must(t, suite.admin.Patch(t.Context(), child, client.RawPatch(types.StrategicMergePatchType, []byte(patch))))
	}
	waitFor(t, restored)

	lost := before.configMaps[0].DeepCopy()
	must(t, suite.admin.Delete(t.Context(), lost))
	waitForStatus(t, namespace, "web", func(object *v1alpha2.NginxOperator) error {
		want := fmt.Sprintf("ConfigMap %q of the running Pods was deleted", lost.Name)
		if text := fmt.Sprint(object.Status.BlockedBy); !strings.Contains(text, want) {
			return errors.New(text)
		}
		return nil
	})

	// The operator applies a spec that is not blocked, and what was in effect before goes.
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Config, o.Spec.Content = nil, nil })
	waitForWeb(t, namespace, func(now children) error {
		if now.deployment.Spec.Template.Spec.Containers[0].Image != object.Spec.Image {
			return errors.New("the spec is not applied")
		}
		return nil
	})
	makeReady(t, namespace, "web")
	waitFor(t, func() error {
		revisions, err := revisionsOf(t.Context(), namespace)
		if err != nil || len(revisions) != 0 {
			return errors.Join(fmt.Errorf("%d revisions", len(revisions)), err)
		}
		return nil
	})
	if got := must1(childrenOf(t.Context(), namespace, "web"))(t); got.deployment.Spec.Template.Spec.Containers[0].Image != object.Spec.Image {
		t.Errorf("image %q", got.deployment.Spec.Template.Spec.Containers[0].Image)
	}
}

func revisionsOf(ctx context.Context, namespace string) ([]appsv1.ControllerRevision, error) {
	list := &appsv1.ControllerRevisionList{}
	err := suite.admin.List(ctx, list, client.InNamespace(namespace))
	return list.Items, err
}

// declaredIn returns the specs and data of children by kind and name, without the fields that the
// API server allocates.
func declaredIn(c children) map[string]any {
	out := map[string]any{}
	if c.deployment != nil {
		out["Deployment"] = c.deployment.Spec
	}
	if c.service != nil {
		spec := c.service.Spec
		spec.ClusterIP, spec.ClusterIPs = "", nil
		out["Service"] = spec
	}
	if c.policy != nil {
		out["NetworkPolicy"] = c.policy.Spec
	}
	if c.budget != nil {
		out["PodDisruptionBudget"] = c.budget.Spec
	}
	if c.ingress != nil {
		out["Ingress"] = c.ingress.Spec
	}
	if c.route != nil {
		out["HTTPRoute"] = c.route.Spec
	}
	for _, configMap := range c.configMaps {
		out[configMap.Name] = configMap.Data
	}
	return out
}
