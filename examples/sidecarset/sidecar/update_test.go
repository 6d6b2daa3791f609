package sidecar

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

// running returns the sample Pod with its sidecar, ready, as a kubelet reports it.
func running(t *testing.T) *corev1.Pod {
	t.Helper()
	pod, _ := Inject(samplePod(t), []v1alpha1.SidecarSet{*sampleSet(t)})
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "app-1"}, {Name: "sidecar1", ContainerID: "sidecar-1"}}
	return pod
}

func TestUpdateImages(t *testing.T) {
	pod, set := running(t), sampleSet(t, withImage("busybox:1.36"))
	got := UpdateImages(pod, set)
	want := running(t)
	want.Spec.Containers[1].Image = "busybox:1.36"
	want.Annotations[AnnotationHash] = `{"test-sidecarset":"` + HashesOf(&set.Spec).All + `"}`
	want.Annotations[AnnotationInPlaceUpdate] = `{"test-sidecarset":{"sidecar1":"sidecar-1"}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(running(t), pod); diff != "" {
		t.Errorf("what was given changed:\n%s", diff)
	}
}

// A Pod is settled when the kubelet reports another container than the one whose image was replaced.
func TestSettled(t *testing.T) {
	updated := UpdateImages(running(t), sampleSet(t, withImage("busybox:1.36")))
	if !Settled(running(t)) || Settled(updated) {
		t.Errorf("before %t, want true; after %t, want false", Settled(running(t)), Settled(updated))
	}
	updated.Status.ContainerStatuses[0].ContainerID = "app-2"
	if Settled(updated) {
		t.Error("another container restarted, and the Pod counts as settled")
	}
	updated.Status.ContainerStatuses[1].ContainerID = "sidecar-2"
	if !Settled(updated) {
		t.Error("the sidecar restarted, and the Pod does not count as settled")
	}
	// Back to the image before: it counts from the container that runs now.
	if back := UpdateImages(updated, sampleSet(t)); Settled(back) {
		t.Errorf("not settled yet, got %v", back.Annotations)
	}
}

// Updates of two SidecarSets do not forget each other.
func TestUpdatesOfTwo(t *testing.T) {
	other := sampleSet(t, named("other", "sidecar2"))
	pod, _ := Inject(running(t), []v1alpha1.SidecarSet{*sampleSet(t), *other})
	pod = UpdateImages(pod, sampleSet(t, withImage("busybox:1.36")))
	withImage("busybox:1.37")(other)
	pod = UpdateImages(pod, other)
	want := map[string]string{"sidecar1": "sidecar-1", "sidecar2": ""}
	if diff := cmp.Diff(want, Replaced(pod.Annotations)); diff != "" {
		t.Error(diff)
	}
	if recorded := Recorded(pod.Annotations); len(recorded) != 2 || recorded["other"] != HashesOf(&other.Spec) {
		t.Errorf("got %v", recorded)
	}
}

// An update that replaces no image needs no restart, and nothing waits for one.
func TestUpdateWithoutReplacement(t *testing.T) {
	got := UpdateImages(running(t), sampleSet(t))
	if _, waits := got.Annotations[AnnotationInPlaceUpdate]; waits || !Settled(got) {
		t.Errorf("got %v", got.Annotations)
	}
}

// What cannot be read counts as nothing.
func TestDamagedAnnotations(t *testing.T) {
	damaged := map[string]string{AnnotationHash: "{", AnnotationInPlaceUpdate: "[]"}
	if got := Recorded(damaged); got != nil {
		t.Errorf("got %v", got)
	}
	if got := Replaced(damaged); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestActiveAndReady(t *testing.T) {
	pod := running(t)
	if !Active(pod) || !Ready(pod) {
		t.Error("a running Pod is not")
	}
	pod.Status.Phase = corev1.PodPending
	if !Active(pod) || Ready(pod) {
		t.Error("a Pod that is pending is active and not ready")
	}
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		if pod.Status.Phase = phase; Active(pod) {
			t.Errorf("a Pod that is %s is active", phase)
		}
	}
}
