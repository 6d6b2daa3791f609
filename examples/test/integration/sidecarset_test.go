package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/controller"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// newSidecarSet creates the sample SidecarSet of the source document. The namespace is its name,
// and the value of the label that it selects. newSidecarSet waits until Pods get the sidecar.
func newSidecarSet(t *testing.T, namespace string) *v1alpha1.SidecarSet {
	t.Helper()
	set := sample(t, "sidecarset/sample/sidecarset.yaml", &v1alpha1.SidecarSet{}, "", namespace)
	set.Spec.Selector.MatchLabels["app"] = namespace
	create(t, set)
	t.Cleanup(func() { remove(t, set) })
	waitUntil(t, "not injected", func() bool {
		pod := selected(namespace, "probe")
		return suite.admin.Create(t.Context(), pod, client.DryRunAll) == nil && len(pod.Spec.Containers) == 2
	})
	return set
}

// selected returns a Pod that the SidecarSet of its namespace selects.
func selected(namespace, name string) *corev1.Pod {
	pod := newPod(namespace, name)
	pod.Labels = map[string]string{"app": namespace}
	return pod
}

// serve reports a Pod as ready. The ID of each container represents its image.
func serve(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	status := corev1.PodStatus{Phase: corev1.PodRunning}
	status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, container := range read(t, pod).Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ContainerID: "containerd://" + container.Image, Ready: true,
		})
	}
	report(t, pod, status)
}

// waitForCounts waits until the status of the current generation has these counts, and these
// conditions as TYPE=REASON.
func waitForCounts(t *testing.T, set *v1alpha1.SidecarSet, matched, updated, ready int32, conditions ...string) {
	t.Helper()
	waitUntil(t, &set.Status, func() bool {
		status := read(t, set).Status
		var got []string
		for _, condition := range status.Conditions {
			got = append(got, condition.Type+"="+condition.Reason)
		}
		return status.ObservedGeneration == set.Generation && status.MatchedPods == matched && status.UpdatedPods == updated &&
			status.ReadyPods == ready && slices.Equal(got, conditions)
	})
}

// TestSidecarSetStatus checks that a SidecarSet gets defaults, and that the status follows the
// Pods. Changes other than the image are reported, and take effect when Pods are recreated.
func TestSidecarSetStatus(t *testing.T) {
	namespace := newNamespace(t)
	set := newSidecarSet(t, namespace)
	container := read(t, set).Spec.Containers[0]
	if container.ImagePullPolicy != corev1.PullAlways || container.TerminationMessagePolicy != corev1.TerminationMessageReadFile {
		t.Errorf("the defaults are missing: %+v", container)
	}
	waitForCounts(t, set, 0, 0, 0)
	pod := selected(namespace, "test-pod")
	create(t, pod)
	serve(t, pod)
	waitForCounts(t, set, 1, 1, 1)
	update(t, set, func(set *v1alpha1.SidecarSet) { set.Spec.Containers[0].Command = []string{"sleep", "1d"} })
	waitForCounts(t, set, 1, 0, 1, "NotUpdatableInPlace=OtherFieldsChanged")
	waitForEvents(t, set, "Warning NotUpdatableInPlace "+meta.FindStatusCondition(set.Status.Conditions, "NotUpdatableInPlace").Message)
	remove(t, pod)
	create(t, selected(namespace, "new"))
	waitForCounts(t, set, 1, 1, 0)
}

// TestSidecarSetUpdate checks that a new image is set in running Pods one at a time, unless paused.
// While the operator is down, Pods are created without sidecars, and no SidecarSet can be stored.
// The update continues after the restart.
func TestSidecarSetUpdate(t *testing.T) {
	namespace := newNamespace(t)
	set := newSidecarSet(t, namespace)
	gone := selected(namespace, "gone")
	pods := []*corev1.Pod{selected(namespace, "pod-0"), selected(namespace, "pod-1"), selected(namespace, "pod-2")}
	for _, pod := range append(pods, gone) {
		create(t, pod)
		serve(t, pod)
	}
	waitForCounts(t, set, 4, 4, 4)
	update(t, set, func(set *v1alpha1.SidecarSet) { set.Spec.Containers[0].Image, set.Spec.Paused = "busybox:1.36", true })
	waitForCounts(t, set, 4, 0, 4, "Updating=Paused")

	suite.operator.Kill()
	bare := selected(namespace, "bare")
	if create(t, bare); len(bare.Spec.Containers) != 1 {
		t.Errorf("got %+v", bare.Spec.Containers)
	}
	read(t, set).Spec.Paused = false
	if err := suite.admin.Update(t.Context(), set); err == nil {
		t.Error("a SidecarSet was stored without its webhook")
	}
	remove(t, gone)
	must(t, startOperator())
	waitForCounts(t, set, 3, 0, 3, "Updating=Paused")

	update(t, set, func(set *v1alpha1.SidecarSet) { set.Spec.Paused = false })
	conditions := []string{"Updating=WaitingForPod"}
	for done := int32(1); done <= 3; done++ {
		if done == 3 {
			conditions = nil
		}
		waitForCounts(t, set, 3, done, 3, conditions...)
		if done == 2 {
			suite.operator.Kill()
			must(t, startOperator())
		}
		settled(t, "sidecarset")
		updated := int32(0)
		for _, pod := range pods {
			uid := pod.UID
			if read(t, pod).UID != uid {
				t.Errorf("%s was recreated", pod.Name)
			}
			if pod.Spec.Containers[1].Image == "busybox:1.36" {
				updated++
			}
		}
		if updated != done {
			t.Fatalf("%d Pods are updated, want %d", updated, done)
		}
		for _, pod := range pods {
			serve(t, pod)
		}
	}
	waitForCounts(t, set, 3, 3, 3)
}

// TestSidecarSetExclusions checks that Pods of Kubernetes and the operator, and Pods that opt out,
// get no sidecars.
func TestSidecarSetExclusions(t *testing.T) {
	namespace := newNamespace(t)
	newSidecarSet(t, namespace)
	disabled := map[string]string{"kruise.io/sidecarset-injection": "disabled"}
	optedOut := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: disabled}}
	create(t, optedOut)
	for name, change := range map[string]func(*corev1.Pod){
		"kube-system":         func(pod *corev1.Pod) { pod.Namespace = "kube-system" },
		"kube-public":         func(pod *corev1.Pod) { pod.Namespace = "kube-public" },
		"the operator's own":  func(pod *corev1.Pod) { pod.Namespace = operatorNamespace },
		"namespace opted out": func(pod *corev1.Pod) { pod.Namespace = optedOut.Name },
		"Pod opted out":       func(pod *corev1.Pod) { pod.Labels["kruise.io/sidecarset-injection"] = "disabled" },
	} {
		pod := selected(namespace, "excluded")
		// The operator's namespace requires this security context.
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

// TestSidecarSetWebhook checks that the webhook for Pods cannot block a cluster: it ignores
// failures and has a short timeout.
func TestSidecarSetWebhook(t *testing.T) {
	installed := &admissionregistrationv1.MutatingWebhookConfiguration{}
	installed.Name = operatorName + "-mutating-webhook-configuration"
	hooks := slices.DeleteFunc(read(t, installed).Webhooks, func(hook admissionregistrationv1.MutatingWebhook) bool {
		return hook.Rules[0].Resources[0] != "pods"
	})
	want := []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	if len(hooks) != 1 || *hooks[0].FailurePolicy != admissionregistrationv1.Ignore || *hooks[0].TimeoutSeconds > 2 ||
		len(hooks[0].Rules) != 1 || !slices.Equal(hooks[0].Rules[0].Operations, want) {
		t.Errorf("the webhooks for Pods are %+v", hooks)
	}
}

// TestSidecarSetManyPods checks that irrelevant changes of a Pod cause no reconcile, and that many
// Pods cause few writes. The controller batches events. So the duration of the creation bounds the
// number of writes, even on a busy machine.
func TestSidecarSetManyPods(t *testing.T) {
	namespace := newNamespace(t)
	set := newSidecarSet(t, namespace)
	const (
		many = 200
		// others are the writes for the creation of the SidecarSet, for the first Pod, and for a
		// repeated reconcile.
		others = 5
	)
	pods := make([]*corev1.Pod, many)
	began := time.Now()
	must(t, harness.InParallel(t.Context(), 16, many, func(ctx context.Context, i int) error {
		pods[i] = selected(namespace, fmt.Sprint("pod-", i))
		return suite.admin.Create(ctx, pods[i])
	}))
	waitForCounts(t, set, many, many, 0)
	most := min(int(time.Since(began)/controller.Batch)+others, many-1)
	writes := audit(t, func(e apiserver.Request) bool {
		return e.ObjectRef.Name == set.Name && e.ObjectRef.Subresource == "status"
	})
	if len(writes) > most {
		t.Errorf("%d writes of the status for %d Pods, want %d at most", len(writes), many, most)
	}

	before := settled(t, "sidecarset")
	for i := range 50 {
		report(t, pods[i], corev1.PodStatus{Phase: corev1.PodPending, Message: "noise"})
	}
	create(t, newPod(namespace, "foreign"))
	if after := settled(t, "sidecarset"); after != before {
		t.Errorf("noise cost %d reconciles", after-before)
	}
}
