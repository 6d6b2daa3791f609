package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
	"github.com/example/nginx-operator/examples/test/refusal"
	"github.com/example/nginx-operator/examples/test/sample"
)

// newSidecarSet makes the SidecarSet of the document, under the name of a namespace and for Pods with that name as their
// label, since SidecarSets have no namespace and tests should not meet. The webhook learns of it a moment later.
func newSidecarSet(t *testing.T, namespace string) *v1alpha1.SidecarSet {
	t.Helper()
	set := sample.Read[v1alpha1.SidecarSet](t, "../../sidecarset/sample/sidecarset.yaml")
	set.Name, set.Spec.Selector.MatchLabels["app"] = namespace, namespace
	create(t, set)
	t.Cleanup(func() { remove(t, set) })
	waitFor(t, func() error {
		pod := newPod(namespace, "probe")
		pod.Labels = map[string]string{"app": namespace}
		if err := suite.admin.Create(t.Context(), pod, client.DryRunAll); err != nil || len(pod.Spec.Containers) == 2 {
			return err
		}
		return errors.New("Pods get no sidecar yet")
	})
	return set
}

// newSelected makes a Pod that the SidecarSet of its namespace selects.
func newSelected(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	pod := newPod(namespace, name)
	pod.Labels = map[string]string{"app": namespace}
	create(t, pod)
	return pod
}

// serve writes what the kubelet reports of a Pod whose containers run their images, each under an ID that stands for it.
func serve(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	read(t, pod)
	status := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ContainerID: "containerd://" + container.Image, Ready: true,
		})
	}
	report(t, pod, status)
}

// waitForCounts waits until the status of the current generation has these numbers.
func waitForCounts(t *testing.T, set *v1alpha1.SidecarSet, matched, updated, ready int32) {
	t.Helper()
	waitFor(t, func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		status := set.Status
		if status.ObservedGeneration != set.Generation || status.MatchedPods != matched || status.UpdatedPods != updated || status.ReadyPods != ready {
			return fmt.Errorf("want %d matched, %d updated and %d ready of generation %d, got %+v", matched, updated, ready, set.Generation, status)
		}
		return nil
	})
}

// waitForCondition waits until a condition of the current generation has a reason; "" is for none at all.
func waitForCondition(t *testing.T, set *v1alpha1.SidecarSet, conditionType, reason string) {
	t.Helper()
	waitFor(t, func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		got := ""
		if found := meta.FindStatusCondition(set.Status.Conditions, conditionType); found != nil {
			got = found.Reason
		}
		if set.Status.ObservedGeneration != set.Generation || got != reason {
			return fmt.Errorf("want %s with the reason %q, got %+v", conditionType, reason, set.Status)
		}
		return nil
	})
}

// withImage returns the names of the Pods whose sidecar declares an image.
func withImage(t *testing.T, namespace, image string) []string {
	t.Helper()
	list := &corev1.PodList{}
	must(t, suite.admin.List(t.Context(), list, client.InNamespace(namespace)))
	var out []string
	for _, pod := range list.Items {
		if len(pod.Spec.Containers) > 1 && pod.Spec.Containers[1].Image == image {
			out = append(out, pod.Name)
		}
	}
	return out
}

// The walk through of the document: a SidecarSet is made and gets defaults and hashes; a Pod is made and gets the sidecar;
// the status follows.
func TestSidecarSetWalkThrough(t *testing.T) {
	namespace := newNamespace(t)
	set := newSidecarSet(t, namespace)
	container := read(t, set).Spec.Containers[0]
	if container.ImagePullPolicy != corev1.PullAlways || container.TerminationMessagePolicy != corev1.TerminationMessageReadFile {
		t.Errorf("the defaults are missing: %+v", container)
	}
	waitForCounts(t, set, 0, 0, 0)

	pod := newSelected(t, namespace, "test-pod")
	if len(pod.Spec.Containers) != 2 || pod.Spec.Containers[1].Name != "sidecar1" || !slices.Contains(pod.Spec.Containers[1].Env, corev1.EnvVar{Name: "IS_INJECTED", Value: "true"}) {
		t.Errorf("the containers are %+v", pod.Spec.Containers)
	}
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "log-volume" && v.EmptyDir != nil }) {
		t.Errorf("the volumes are %+v", pod.Spec.Volumes)
	}
	for _, key := range []string{sidecar.AnnotationHash, sidecar.AnnotationHashWithoutImage} {
		if want := fmt.Sprintf(`{%q:%q}`, set.Name, set.Annotations[key]); pod.Annotations[key] != want {
			t.Errorf("%s is %s, want %s", key, pod.Annotations[key], want)
		}
	}
	waitForCounts(t, set, 1, 1, 0)
	serve(t, pod)
	waitForCounts(t, set, 1, 1, 1)
	if len(set.Status.Conditions) != 0 {
		t.Errorf("with nothing to tell, the status tells %+v", set.Status.Conditions)
	}
	shown := columns(t, "/apis/apps.kruise.io/v1alpha1/sidecarsets/"+set.Name)
	delete(shown, "Age")
	if diff := cmp.Diff(map[string]any{"Name": set.Name, "Matched": float64(1), "Updated": float64(1), "Ready": float64(1)}, shown); diff != "" {
		t.Errorf("kubectl get shows (-want +got):\n%s", diff)
	}
	remove(t, pod)
	waitForCounts(t, set, 0, 0, 0)
}

// Another image goes into running Pods, one after the other, across a restart of the operator; paused stops it.
func TestSidecarSetUpdate(t *testing.T) {
	namespace := newNamespace(t)
	set := newSidecarSet(t, namespace)
	pods := map[string]*corev1.Pod{}
	for i := range 3 {
		pod := newSelected(t, namespace, fmt.Sprint("pod-", i))
		serve(t, pod)
		pods[pod.Name] = pod
	}
	waitForCounts(t, set, 3, 3, 3)

	update(t, set, func(set *v1alpha1.SidecarSet) { set.Spec.Containers[0].Image, set.Spec.Paused = "busybox:1.36", true })
	waitForCondition(t, set, v1alpha1.ConditionUpdating, v1alpha1.ReasonPaused)
	waitForCounts(t, set, 3, 0, 3)
	update(t, set, func(set *v1alpha1.SidecarSet) { set.Spec.Paused = false })
	for done := int32(1); done <= 3; done++ {
		waitForCounts(t, set, 3, done, 3)
		if done == 2 {
			suite.operator.Kill()
			restart(t)
		}
		settled(t, "sidecarset")
		updated := withImage(t, namespace, "busybox:1.36")
		if len(updated) != int(done) {
			t.Fatalf("%v are updated at a time, want %d Pods", updated, done)
		}
		for _, name := range updated {
			serve(t, pods[name])
		}
	}
	waitForCondition(t, set, v1alpha1.ConditionUpdating, "")
	for _, pod := range pods {
		if before := pod.UID; read(t, pod).UID != before {
			t.Errorf("%s was not updated in place", pod.Name)
		}
	}
}

// More than the image is told, and reaches Pods when they are created anew.
func TestSidecarSetNotUpdatableInPlace(t *testing.T) {
	namespace := newNamespace(t)
	set := newSidecarSet(t, namespace)
	old := newSelected(t, namespace, "old")
	waitForCounts(t, set, 1, 1, 0)
	update(t, set, func(set *v1alpha1.SidecarSet) { set.Spec.Containers[0].Command = []string{"sleep", "1d"} })
	waitForCondition(t, set, v1alpha1.ConditionNotUpdatableInPlace, v1alpha1.ReasonOtherFieldsChanged)
	waitForCounts(t, set, 1, 0, 0)
	if events := told(t, set); len(events) != 1 || !strings.HasPrefix(events[0], "Warning NotUpdatableInPlace 1 of 1 Pods") {
		t.Errorf("the Events are %q", events)
	}
	remove(t, old)
	newSelected(t, namespace, "new")
	waitForCounts(t, set, 1, 1, 0)
	waitForCondition(t, set, v1alpha1.ConditionNotUpdatableInPlace, "")
}

// Pods of Kubernetes and of the operator, and whoever does not want to, get no sidecars.
func TestSidecarSetExclusions(t *testing.T) {
	namespace := newNamespace(t)
	newSidecarSet(t, namespace)
	optedOut := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: map[string]string{sidecar.LabelInjection: sidecar.InjectionDisabled}}}
	create(t, optedOut)
	for name, change := range map[string]func(*corev1.Pod){
		"kube-system":          func(pod *corev1.Pod) { pod.Namespace = "kube-system" },
		"kube-public":          func(pod *corev1.Pod) { pod.Namespace = "kube-public" },
		"the operator's own":   func(pod *corev1.Pod) { pod.Namespace = operatorNamespace },
		"namespace opted out":  func(pod *corev1.Pod) { pod.Namespace = optedOut.Name },
		"Pod opted out":        func(pod *corev1.Pod) { pod.Labels[sidecar.LabelInjection] = sidecar.InjectionDisabled },
		"a label of its own":   func(pod *corev1.Pod) { pod.Labels["app"] = "other" },
		"container of its own": func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = "sidecar1" },
	} {
		pod := newPod(namespace, "excluded")
		pod.Labels = map[string]string{"app": namespace}
		// The operator's namespace asks for this.
		pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
		change(pod)
		must(t, suite.admin.Create(t.Context(), pod, client.DryRunAll))
		if len(pod.Spec.Containers) != 1 || pod.Annotations[sidecar.AnnotationHash] != "" {
			t.Errorf("%s: got %+v", name, pod.Spec.Containers)
		}
	}
}

// While the operator is down, Pods are created as they are, and the status is right again when it is back.
func TestSidecarSetWithoutTheOperator(t *testing.T) {
	namespace := newNamespace(t)
	set := newSidecarSet(t, namespace)
	gone, stays := newSelected(t, namespace, "gone"), newSelected(t, namespace, "stays")
	waitForCounts(t, set, 2, 2, 0)
	suite.operator.Kill()
	if bare := newSelected(t, namespace, "bare"); len(bare.Spec.Containers) != 1 {
		t.Errorf("got %+v", bare.Spec.Containers)
	}
	remove(t, gone)
	serve(t, stays)
	restart(t)
	waitForCounts(t, set, 1, 1, 1)
}

// What happens to Pods and does not count costs no pass, and many Pods cost few writes.
func TestSidecarSetManyPods(t *testing.T) {
	namespace := newNamespace(t)
	set := newSidecarSet(t, namespace)
	const many = 200
	writes := func() int {
		entries := audit(t, "", "patch")
		return len(slices.DeleteFunc(entries, func(e auditEntry) bool { return e.ObjectRef.Name != set.Name || e.ObjectRef.Subresource != "status" }))
	}
	var pods []*corev1.Pod
	for i := range many {
		pods = append(pods, newSelected(t, namespace, fmt.Sprint("pod-", i)))
	}
	waitForCounts(t, set, many, many, 0)
	if n := writes(); n > many/2 {
		t.Errorf("%d writes of the status for %d Pods", n, many)
	}
	before := settled(t, "sidecarset")
	for i := range 50 {
		report(t, pods[i], corev1.PodStatus{Phase: corev1.PodPending, Message: "noise"})
	}
	create(t, newPod(namespace, "foreign"))
	if after := settled(t, "sidecarset"); after != before {
		t.Errorf("noise cost %d passes", after-before)
	}
}

// The tables of what neither the schema alone nor a unit test can tell.
func TestSidecarSetRefused(t *testing.T) {
	strict := client.WithFieldValidation(suite.admin, "Strict")
	for _, table := range []string{"webhook", "apiserver"} {
		manifests, err := refusal.Read("../../sidecarset/testdata/refused/" + table)
		must(t, err)
		for _, manifest := range manifests {
			t.Run(table+"/"+manifest.Name, func(t *testing.T) {
				if err := strict.Create(t.Context(), manifest.Object); err == nil || !strings.Contains(err.Error(), manifest.Want) {
					t.Errorf("want a refusal with %q, got: %v", manifest.Want, err)
				}
			})
		}
	}
}
