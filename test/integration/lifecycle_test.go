package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestCreate verifies that an object with an empty spec gets its defaults and all children of one
// replica, without a PodDisruptionBudget. The object is the controller of each child, so that the
// garbage collector deletes the child with the object.
func TestCreate(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := createWeb(t, namespace, nil)
	if diff := cmp.Diff(v1alpha2.NginxOperatorSpec{Replicas: ptr.To[int32](1)}, object.Spec); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	got := waitForChildren(t, namespace, "web")
	if got.budget != nil {
		t.Error("one replica has a PodDisruptionBudget")
	}
	for _, child := range []client.Object{got.deployment, got.service, got.policy, &got.configMaps[0]} {
		owner := metav1.GetControllerOf(child)
		if owner == nil || owner.UID != object.UID || !ptr.Deref(owner.BlockOwnerDeletion, false) {
			t.Errorf("%T: controller is %+v", child, owner)
		}
	}
	pod := got.deployment.Spec.Template.Spec
	if mounted := pod.Volumes[0].ConfigMap.Name; mounted != got.configMaps[0].Name {
		t.Errorf("the Deployment mounts %s, the ConfigMap is %s", mounted, got.configMaps[0].Name)
	}
	if !strings.Contains(got.configMaps[0].Data["nginx.conf"], "listen 8080 default_server;") {
		t.Errorf("nginx does not listen on 8080:\n%s", got.configMaps[0].Data["nginx.conf"])
	}
	status := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status
	if want := fmt.Sprintf("http://web.%s.svc:8080", namespace); status.URL != want || status.Image != operandImage {
		t.Errorf("status has url %q and image %q", status.URL, status.Image)
	}
}

// TestPodsAreRestricted verifies that the Pods comply with the Pod Security level restricted: the
// API server admits a Pod created from the Deployment.
func TestPodsAreRestricted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	update(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, func(n *corev1.Namespace) {
		metav1.SetMetaDataLabel(&n.ObjectMeta, "pod-security.kubernetes.io/enforce", "restricted")
	})
	create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}})
	createWeb(t, namespace, func(s *v1alpha2.NginxOperatorSpec) { s.Ports = onPort(80) })
	template := waitForChildren(t, namespace, "web").deployment.Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.GenerateName = namespace, "web-"
	create(t, pod)
	pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "web-"}, Spec: template.Spec}
	pod.Spec.SecurityContext.RunAsNonRoot = nil
	if err := suite.admin.Create(t.Context(), pod); err == nil {
		t.Error("the namespace takes any Pod, so this test shows nothing")
	}
}

// TestMovePort verifies a change from port 80 to 8081 in the Service, the container port, and the
// configuration. The old configuration stays while a revision mounts it, and is deleted with that
// revision.
func TestMovePort(t *testing.T) {
	t.Parallel()
	namespace, object, before := newWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Ports = onPort(80) })
	sysctls := []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	if diff := cmp.Diff(sysctls, before.deployment.Spec.Template.Spec.SecurityContext.Sysctls); diff != "" {
		t.Errorf("sysctls of port 80 (-want +got):\n%s", diff)
	}
	revision := replicaSet(before.deployment)
	createSeen(t, object, revision)

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Ports = onPort(8081) })
	waitForWeb(t, namespace, func(after children) error {
		template := after.deployment.Spec.Template.Spec
		ports := []corev1.ContainerPort{
			{Name: "http", ContainerPort: 8081, Protocol: corev1.ProtocolTCP},
			{Name: "health", ContainerPort: 18080, Protocol: corev1.ProtocolTCP},
		}
		if diff := cmp.Diff(ports, template.Containers[0].Ports); diff != "" {
			return fmt.Errorf("container ports (-want +got):\n%s", diff)
		}
		if len(after.service.Spec.Ports) != 1 || after.service.Spec.Ports[0].Port != 8081 || template.SecurityContext.Sysctls != nil {
			return fmt.Errorf("service ports %+v, sysctls %+v", after.service.Spec.Ports, template.SecurityContext.Sysctls)
		}
		if len(after.configMaps) != 2 {
			return fmt.Errorf("want the old and the new ConfigMap, got %d", len(after.configMaps))
		}
		return nil
	})
	must(t, suite.admin.Delete(t.Context(), revision))
	waitForWeb(t, namespace, func(after children) error {
		if len(after.configMaps) != 1 || after.configMaps[0].Name == before.configMaps[0].Name {
			return fmt.Errorf("the ConfigMap of a revision that is gone stays: %d", len(after.configMaps))
		}
		return nil
	})
}

// replicaSet returns the ReplicaSet that the Deployment controller would create for a revision.
func replicaSet(deployment *appsv1.Deployment) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{}
	set.Namespace, set.Name, set.Labels = deployment.Namespace, deployment.Name+"-1", deployment.Spec.Template.Labels
	set.Spec.Selector, set.Spec.Template = deployment.Spec.Selector, *deployment.Spec.Template.DeepCopy()
	set.Spec.Replicas = ptr.To[int32](0)
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	return set
}

// createSeen creates a revision and returns when the operator has seen it. Each kind has its own
// watch, so createSeen creates two more ConfigMaps after the revision, which mounts one of them.
// The operator deletes ConfigMaps that no revision mounts. If it deletes only the ConfigMap that is
// not mounted, it has seen the revision.
func createSeen(t *testing.T, object *v1alpha2.NginxOperator, revision *appsv1.ReplicaSet) {
	t.Helper()
	mounted, loose := newConfigMap(object.Namespace, "mounted", nil), newConfigMap(object.Namespace, "not-mounted", nil)
	pod := &revision.Spec.Template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "more", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: mounted.Name}},
	}})
	create(t, revision)
	isThere := func(configMap *corev1.ConfigMap) bool {
		err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(configMap), &corev1.ConfigMap{})
		must(t, client.IgnoreNotFound(err))
		return err == nil
	}
	waitFor(t, func() error {
		for _, configMap := range []*corev1.ConfigMap{mounted, loose} {
			one := configMap.DeepCopy()
			one.Labels = wellknown.ChildLabels(object.Name, operandImage)
			one.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(object, v1alpha2.GroupVersion.WithKind("NginxOperator"))}
			must(t, client.IgnoreAlreadyExists(suite.admin.Create(t.Context(), one)))
		}
		waitFor(t, func() error {
			if isThere(loose) {
				return errors.New("a ConfigMap that nobody mounts is still there")
			}
			return nil
		})
		if !isThere(mounted) {
			return errors.New("the operator does not know of the revision")
		}
		return nil
	})
	must(t, suite.admin.Delete(t.Context(), mounted))
}

// TestForceRedeploy verifies that forceRedeploy changes one annotation of the Pods and nothing
// else.
func TestForceRedeploy(t *testing.T) {
	t.Parallel()
	namespace, object, before := newWeb(t, nil)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.ForceRedeploy = "2026-01-01" })
	waitForWeb(t, namespace, func(after children) error {
		want := before.deployment.Spec.DeepCopy()
		want.Template.Annotations = map[string]string{"operator.example.com/force-redeploy": "2026-01-01"}
		if diff := cmp.Diff(*want, after.deployment.Spec); diff != "" {
			return fmt.Errorf("Deployment (-want +got):\n%s", diff)
		}
		if after.service.ResourceVersion != before.service.ResourceVersion || after.policy.ResourceVersion != before.policy.ResourceVersion {
			t.Error("another child was written")
		}
		return nil
	})
}

// TestScale verifies that a PodDisruptionBudget exists only for two or more replicas, and that the
// scale subresource works like an edit of the spec.
func TestScale(t *testing.T) {
	t.Parallel()
	namespace, object, _ := newWeb(t, nil)
	for _, n := range []int32{3, 1, 0, 2} {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: n}}
		must(t, suite.admin.SubResource("scale").Update(t.Context(), object, client.WithSubResourceBody(scale)))
		waitForWeb(t, namespace, func(got children) error {
			if *got.deployment.Spec.Replicas != n || (got.budget != nil) != (n > 1) {
				return fmt.Errorf("at %d: Deployment has %d replicas, PodDisruptionBudget %t", n, *got.deployment.Spec.Replicas, got.budget != nil)
			}
			return nil
		})
	}
}

// TestDeletedChildComesBack verifies that the operator recreates a deleted child.
func TestDeletedChildComesBack(t *testing.T) {
	t.Parallel()
	namespace, _, _ := newWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](2) })
	waitFor(t, func() error { // the operator creates the PodDisruptionBudget last
		if got, err := childrenOf(t.Context(), namespace, "web"); err != nil || got.budget == nil {
			return errors.Join(errors.New("no PodDisruptionBudget"), err)
		}
		return nil
	})
	got := must1(childrenOf(t.Context(), namespace, "web"))(t)
	for _, child := range []client.Object{got.deployment, got.service, got.policy, got.budget, &got.configMaps[0]} {
		must(t, suite.admin.Delete(t.Context(), child, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		waitFor(t, func() error {
			again := child.DeepCopyObject().(client.Object)
			if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(child), again); err != nil {
				return err
			}
			if again.GetUID() == child.GetUID() {
				return fmt.Errorf("%T is still the old one", child)
			}
			return nil
		})
	}
}

// TestNothingIsMadeDuringDeletion verifies that the operator does not recreate children while
// foreground deletion removes the object.
func TestNothingIsMadeDuringDeletion(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := newInstance(namespace, "web")
	object.Finalizers = []string{"example.com/hold"}
	create(t, object)
	got := waitForChildren(t, namespace, "web")
	must(t, suite.admin.Delete(t.Context(), object))
	// Each kind has its own watch, and each watch is in order. If an object that is created later
	// has children, the operator has seen the deletion of the first object. If the later object's
	// Service comes back, the operator has seen the deletion of the first object's Service.
	create(t, newInstance(namespace, "later"))
	later := waitForChildren(t, namespace, "later")
	must(t, suite.admin.Delete(t.Context(), got.service))
	must(t, suite.admin.Delete(t.Context(), later.service))
	waitFor(t, func() error {
		if again, err := childrenOf(t.Context(), namespace, "later"); err != nil || again.service == nil {
			return errors.Join(errors.New("the other object's Service is missing"), err)
		}
		return nil
	})
	if again := must1(childrenOf(t.Context(), namespace, "web"))(t); again.service != nil {
		t.Error("the Service was recreated")
	}
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Finalizers = nil })
}

// TestTwoObjectsInOneNamespace verifies that two objects in one namespace do not interfere: each
// Service and Deployment selects its own Pods.
func TestTwoObjectsInOneNamespace(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, newInstance(namespace, "one"))
	create(t, newInstance(namespace, "two"))
	one, two := waitForChildren(t, namespace, "one"), waitForChildren(t, namespace, "two")
	if cmp.Equal(one.service.Spec.Selector, two.service.Spec.Selector) ||
		cmp.Equal(one.deployment.Spec.Selector, two.deployment.Spec.Selector) {
		t.Error("the objects share a selector")
	}
	if one.configMaps[0].Name == two.configMaps[0].Name {
		t.Error("the objects share a ConfigMap")
	}
}

// TestKilledOperator verifies that the next operator completes the work of an operator that is
// killed in the middle of it.
func TestKilledOperator(t *testing.T) {
	namespace := newNamespace(t)
	const objects = 12 // more than the operator reconciles at the same time
	for i := range objects {
		object := newInstance(namespace, fmt.Sprintf("web-%d", i))
		object.Spec.Replicas = ptr.To[int32](2)
		create(t, object)
	}
	waitFor(t, func() error { // some children exist, but probably not all
		list := &appsv1.DeploymentList{}
		if err := suite.admin.List(t.Context(), list, client.InNamespace(namespace)); err != nil || len(list.Items) == 0 {
			return errors.Join(fmt.Errorf("%d Deployments", len(list.Items)), err)
		}
		return nil
	})
	must(t, suite.operator.KillLeader(suite.admin))
	startNextOperator(t)
	began := time.Now()
	for i := range objects {
		name := fmt.Sprintf("web-%d", i)
		waitForChildren(t, namespace, name)
		waitFor(t, func() error {
			if got, err := childrenOf(t.Context(), namespace, name); err != nil || got.budget == nil || len(got.configMaps) != 1 {
				return errors.Join(fmt.Errorf("%s has %d ConfigMaps and PodDisruptionBudget %v", name, len(got.configMaps), got.budget), err)
			}
			return nil
		})
	}
	t.Logf("all children were there %s after the successor was ready", time.Since(began).Round(time.Millisecond))
}
