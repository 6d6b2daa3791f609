package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// orphan deletes an instance like kubectl delete --cascade=orphan. The test plays the garbage
// collector, which removes the owner references and then the finalizer.
func orphan(t *testing.T, object *v1alpha2.NginxOperator) {
	t.Helper()
	must(t, suite.admin.Delete(t.Context(), object, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	children := must1(childrenOf(t.Context(), object.Namespace, object.Name))(t).all()
	records := &appsv1.ControllerRevisionList{}
	must(t, suite.admin.List(t.Context(), records, client.InNamespace(object.Namespace)))
	for i := range records.Items {
		children = append(children, &records.Items[i])
	}
	for _, child := range children {
		update(t, child, func(o client.Object) { o.SetOwnerReferences(nil) })
	}
	update(t, object, func(o *v1alpha2.NginxOperator) {
		if !slices.Contains(o.Finalizers, metav1.FinalizerOrphanDependents) {
			t.Fatalf("the finalizers are %v", o.Finalizers)
		}
		o.Finalizers = nil
	})
}

// waitForAdoption waits until an instance controls all its children, and requires that none of them
// was replaced.
func waitForAdoption(t *testing.T, object *v1alpha2.NginxOperator, before children) children {
	t.Helper()
	var after children
	waitFor(t, func() error {
		after = must1(childrenOf(t.Context(), object.Namespace, object.Name))(t)
		for _, child := range after.all() {
			if !metav1.IsControlledBy(child, object) {
				return fmt.Errorf("%T %s is not controlled by the new object: %v", child, child.GetName(), child.GetOwnerReferences())
			}
		}
		return nil
	})
	uids := func(of children) map[string]string {
		out := map[string]string{}
		for _, child := range of.all() {
			out[fmt.Sprintf("%T %s", child, child.GetName())] = string(child.GetUID())
		}
		return out
	}
	if diff := cmp.Diff(uids(before), uids(after)); diff != "" {
		t.Errorf("children were replaced (-before +after):\n%s", diff)
	}
	requireSamePods(t, before, after)
	return after
}

// TestOrphansAreAdopted verifies that an instance takes children of all kinds back that its
// predecessor left, and replaces none of them. An autoscaler has set the number of Pods, which
// stays. A plan predicts that no Pod is replaced.
func TestOrphansAreAdopted(t *testing.T) {
	t.Parallel()
	set := func(s *v1alpha2.NginxOperatorSpec) {
		s.Autoscaling = &v1alpha2.Autoscaling{MinReplicas: ptr.To[int32](2), MaxReplicas: 5}
		s.Expose = routed("shop.example.com")
		s.Monitoring = &v1alpha2.Monitoring{PodMonitor: &v1alpha2.PodMonitor{}, Alerts: &v1alpha2.Alerts{}}
	}
	namespace, object, _ := newReadyWeb(t, set)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.DrainSeconds = ptr.To[int32](7) }) // its record is a ControllerRevision
	waitForStatus(t, namespace, "web", func(*v1alpha2.NginxOperator) error { return nil })
	rollOutUntilReady(t, namespace)
	scaled := must1(childrenOf(t.Context(), namespace, "web"))(t).deployment
	update(t, scaled, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](4) })
	rollOutUntilReady(t, namespace)
	var before children
	waitForStatus(t, namespace, "web", func(o *v1alpha2.NginxOperator) error {
		before = must1(childrenOf(t.Context(), namespace, "web"))(t)
		if len(o.Status.RelatedObjects) != len(before.all()) {
			return fmt.Errorf("the ConfigMaps of the earlier template remain: %v", before.all())
		}
		return nil
	})
	if before.autoscaler == nil || before.route == nil || before.monitor == nil || before.rule == nil || before.budget == nil {
		t.Fatalf("children are missing: %+v", before)
	}
	spec := *object.Spec.DeepCopy()

	orphan(t, object)
	waitForMarker(t, namespace)
	for _, child := range must1(childrenOf(t.Context(), namespace, "web"))(t).all() {
		if len(child.GetOwnerReferences()) > 0 {
			t.Errorf("%T %s was adopted for a deleted object", child, child.GetName())
		}
	}
	planned := nginx(t, namespace, manifestOf(t, spec), "plan", "-f", "-", "--default-image", operandImage)
	wantAnswer(t, planned, 1, "+ NginxOperator web is created", "Pods: none are replaced")
	if strings.Contains(planned.out, "blocked") || strings.Contains(planned.out, "Deployment") {
		t.Errorf("the plan changes the Deployment or is blocked:\n%s", planned.out)
	}

	object = newInstance(namespace, "web")
	object.Spec = spec
	create(t, object)
	after := waitForAdoption(t, object, before)
	rollOutUntilReady(t, namespace)
	waitForStatus(t, namespace, "web", func(o *v1alpha2.NginxOperator) error {
		if len(o.Status.BlockedBy) > 0 || len(o.Status.RelatedObjects) != len(after.all()) {
			return fmt.Errorf("status %+v", o.Status)
		}
		return nil
	})
	if n := *must1(childrenOf(t.Context(), namespace, "web"))(t).deployment.Spec.Replicas; n != 4 {
		t.Errorf("%d replicas, the autoscaler had set 4", n)
	}
	audited := len(audit(t))
	waitForMarker(t, namespace)
	if n := writesOf(t, audited, namespace); len(withoutEvents(n)) > 0 {
		t.Errorf("writes after the adoption: %v", n)
	}
}

// TestRestoredNamespace verifies that an instance adopts copies of children that have only names,
// labels, annotations, and specs, as backup tools restore them, also in another namespace. The
// restored object has no status. A Service that the tool has not restored yet is created.
func TestRestoredNamespace(t *testing.T) {
	t.Parallel()
	from, object, _ := newReadyWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](2) })
	before := must1(childrenOf(t.Context(), from, "web"))(t)
	to := newNamespace(t)
	for _, child := range before.all() {
		if child == client.Object(before.service) {
			continue
		}
		restored := child.DeepCopyObject().(client.Object)
		restored.SetNamespace(to)
		restored.SetUID("")
		restored.SetResourceVersion("")
		restored.SetOwnerReferences(nil)
		restored.SetManagedFields(nil)
		labels := restored.GetLabels()
		labels["velero.io/restore-name"] = "monday"
		restored.SetLabels(labels)
		create(t, restored)
	}
	restored := must1(childrenOf(t.Context(), to, "web"))(t)
	back := newInstance(to, "web")
	back.Spec = *object.Spec.DeepCopy()
	create(t, back)
	waitForChildren(t, to, "web")
	created := must1(childrenOf(t.Context(), to, "web"))(t).service
	restored.service = created
	after := waitForAdoption(t, back, restored)
	requireSamePods(t, before, after)
	rollOutUntilReady(t, to)
	if after.deployment.Labels["velero.io/restore-name"] != "monday" {
		t.Errorf("the labels of the Deployment are %v", after.deployment.Labels)
	}
}

// TestTakenNames verifies that the status names all taken names at once, and that the operator
// creates no Service before the name of the Deployment is free. The foreign objects are those of a
// chart: the cache does not have them.
func TestTakenNames(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	labels := map[string]string{
		"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "web", "app.kubernetes.io/name": "nginx",
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: labels}
	deployment := &appsv1.Deployment{ObjectMeta: *meta.DeepCopy(), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "theirs", Image: "theirs"}}},
		},
	}}
	service := &corev1.Service{ObjectMeta: *meta.DeepCopy(), Spec: corev1.ServiceSpec{
		Selector: labels, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	create(t, deployment)
	create(t, service)
	object := createWeb(t, namespace, nil)
	degraded := waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonNameConflict)
	for _, want := range []string{`Service "web"`, `Deployment "web"`} {
		if !strings.Contains(degraded.Message, want) {
			t.Errorf("the message does not name %s: %s", want, degraded.Message)
		}
	}

	must(t, suite.admin.Delete(t.Context(), service))
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.DrainSeconds = ptr.To[int32](7) }) // the next try is now
	degraded = waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonNameConflict)
	if found := must1(childrenOf(t.Context(), namespace, "web"))(t); found.service != nil || strings.Contains(degraded.Message, "Service") {
		t.Errorf("Service %v, message %s", found.service, degraded.Message)
	}

	must(t, suite.admin.Delete(t.Context(), deployment))
	waitForChildren(t, namespace, "web") // without another change of the object
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)
}
