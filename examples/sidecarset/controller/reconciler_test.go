package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

// The status of the document: the four numbers and nothing else.
func TestStatusOfPodsAsDeclared(t *testing.T) {
	w := newWorld(t, 3)
	set, err := w.pass(t)
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.SidecarSetStatus{ObservedGeneration: 1, MatchedPods: 3, UpdatedPods: 3, ReadyPods: 3}
	if fmt.Sprint(set.Status) != fmt.Sprint(want) {
		t.Errorf("got %+v", set.Status)
	}
	before := set.ResourceVersion
	if set, _ := w.pass(t); set.ResourceVersion != before {
		t.Error("a pass at rest wrote")
	}
}

// Another image goes from Pod to Pod. A Pod is only touched when the one before runs the image, however often the
// SidecarSet is reconciled, whether the watch is behind or not, and whether the operator was restarted meanwhile.
func TestOneAtATime(t *testing.T) {
	w := newWorld(t, 4)
	w.change(t, newImage)
	for done := 1; done <= 4; done++ {
		for range 3 {
			if _, err := w.pass(t); err != nil {
				t.Fatal(err)
			}
		}
		w.watch(t) // the Pod still says that it is ready, with the container from before
		if done == 2 {
			w.restart(t)
		}
		set, err := w.pass(t)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.with(t, "busybox:1.36"); got != done || int(set.Status.UpdatedPods) != done {
			t.Fatalf("%d Pods have the image and the status says %d, want %d", got, set.Status.UpdatedPods, done)
		}
		if reason := reasonOf(set, v1alpha1.ConditionUpdating); done < 4 && reason != v1alpha1.ReasonWaitingForPod {
			t.Errorf("Updating has the reason %q", reason)
		}
		w.kubelet(t)
		w.watch(t)
	}
	if set, err := w.pass(t); err != nil || len(set.Status.Conditions) != 0 || set.Status.ReadyPods != 4 {
		t.Errorf("at the end: %+v, %v", set.Status, err)
	}
}

// The answer to the update counts before the watch tells of it: another Pod that would be next is not touched.
func TestUpdateCountsAtOnce(t *testing.T) {
	w := newWorld(t, 2)
	w.change(t, newImage)
	if _, err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	for _, pod := range w.pods(t) {
		if pod.Spec.Containers[1].Image != "busybox:1.36" {
			// It fails and recovers, so that it is the last one that became available.
			for _, ready := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
				pod.Status.Conditions[0].Status = ready
				w.reconciler.Tally.Observe(&pod)
			}
		}
	}
	if _, err := w.pass(t); err != nil || w.with(t, "busybox:1.36") != 1 {
		t.Errorf("%v; %d Pods are updated at a time", err, w.with(t, "busybox:1.36"))
	}
}

// An image that does not run stops at the first Pod; the right one heals that Pod first.
func TestBadImageStopsAtOnePod(t *testing.T) {
	w := newWorld(t, 3)
	w.change(t, func(set *v1alpha1.SidecarSet) { set.Spec.Containers[0].Image = "bad" })
	if _, err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	var victim string
	for _, pod := range w.pods(t) {
		if pod.Spec.Containers[1].Image == "bad" {
			victim = pod.Name
			pod.Status.Conditions[0].Status = corev1.ConditionFalse
			if err := w.Status().Update(t.Context(), &pod); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 3 {
		w.watch(t)
		if _, err := w.pass(t); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.with(t, "bad"); got != 1 {
		t.Fatalf("%d Pods have the bad image", got)
	}
	w.change(t, newImage)
	if _, err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	for _, pod := range w.pods(t) {
		if has := pod.Spec.Containers[1].Image == "busybox:1.36"; has != (pod.Name == victim) {
			t.Errorf("%s has the image %s", pod.Name, pod.Spec.Containers[1].Image)
		}
	}
}

func TestPaused(t *testing.T) {
	w := newWorld(t, 2)
	w.change(t, func(set *v1alpha1.SidecarSet) { newImage(set); set.Spec.Paused = true })
	set, err := w.pass(t)
	if err != nil || w.with(t, "busybox:1.36") != 0 || set.Status.UpdatedPods != 0 || reasonOf(set, v1alpha1.ConditionUpdating) != v1alpha1.ReasonPaused {
		t.Errorf("%v, %+v", err, set.Status)
	}
	w.change(t, func(set *v1alpha1.SidecarSet) { set.Spec.Paused = false })
	if _, err := w.pass(t); err != nil || w.with(t, "busybox:1.36") != 1 {
		t.Errorf("%v; %d Pods have the image", err, w.with(t, "busybox:1.36"))
	}
}

// More than the image is told in the status and in an Event, and no Pod is touched.
func TestNotUpdatableInPlace(t *testing.T) {
	w := newWorld(t, 2)
	w.change(t, func(set *v1alpha1.SidecarSet) {
		newImage(set)
		set.Spec.Containers[0].Command = []string{"sleep", "1d"}
	})
	set, err := w.pass(t)
	if err != nil || w.with(t, "busybox:1.36") != 0 {
		t.Errorf("%v; %d Pods were touched", err, w.with(t, "busybox:1.36"))
	}
	if reason := reasonOf(set, v1alpha1.ConditionNotUpdatableInPlace); reason != v1alpha1.ReasonOtherFieldsChanged || set.Status.UpdatedPods != 0 {
		t.Errorf("got %+v", set.Status)
	}
	if event := <-w.events.Events; !strings.HasPrefix(event, "Warning NotUpdatableInPlace 2 of 2 Pods cannot be updated in place") {
		t.Errorf("got the Event %q", event)
	}
}

// A refusal of the API server ends in the status and is tried again.
func TestRefusedUpdate(t *testing.T) {
	w := newWorld(t, 1)
	w.change(t, newImage)
	w.refuse = errors.New("a policy forbids it")
	set, err := w.pass(t)
	if !errors.Is(err, w.refuse) || reasonOf(set, v1alpha1.ConditionUpdating) != v1alpha1.ReasonUpdateFailed {
		t.Errorf("%v, %+v", err, set.Status)
	}
	w.refuse = nil
	if _, err := w.pass(t); err != nil || w.with(t, "busybox:1.36") != 1 {
		t.Errorf("%v; %d Pods have the image", err, w.with(t, "busybox:1.36"))
	}
}

// A Pod that the watch has not seen go, or change, is looked at again and not touched.
func TestWatchIsBehind(t *testing.T) {
	w := newWorld(t, 1)
	pod := w.pods(t)[0]
	pod.Annotations = nil
	if err := w.Update(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	w.change(t, newImage)
	if _, err := w.pass(t); err != nil || w.with(t, "busybox:1.36") != 0 {
		t.Errorf("%v; %d Pods have the image", err, w.with(t, "busybox:1.36"))
	}
	if err := w.Delete(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	w.reconciler.Tally.Observe(carrier("pod-0", 1, image1, func(p *corev1.Pod) { p.UID = pod.UID }))
	if _, err := w.pass(t); err != nil {
		t.Error(err)
	}
}

func TestInvalidSetTouchesNothing(t *testing.T) {
	w := newWorld(t, 1)
	w.change(t, func(set *v1alpha1.SidecarSet) { set.Spec.Containers[0].Image = "not valid" })
	set, err := w.pass(t)
	if err != nil || w.with(t, "busybox") != 1 || reasonOf(set, v1alpha1.ConditionInvalid) != v1alpha1.ReasonInvalidSpec {
		t.Errorf("%v, %+v", err, set.Status)
	}
}

func TestDeletedSetIsForgotten(t *testing.T) {
	w := newWorld(t, 1)
	set, err := w.pass(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: set.Name}}); err != nil {
		t.Fatal(err)
	}
	if entry := w.reconciler.Tally.sets[set.Name]; entry.selector != nil || len(entry.groups) != 0 {
		t.Errorf("still counts: %+v", entry)
	}
}

// The transform keeps what counts, and lets go of the rest.
func TestSlimPod(t *testing.T) {
	pod := carrier("a", 7, image2, waiting)
	pod.Annotations["note"] = strings.Repeat("x", 1000)
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	pod.Spec.Containers = []corev1.Container{{Name: "app"}}
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "app", ContainerID: "x"})
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled})
	whole := newPodEntry(pod)
	out, err := slimPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	slim := out.(*corev1.Pod)
	if got := newPodEntry(slim); !got.same(whole) || got.version != whole.version {
		t.Errorf("counts as %+v, whole as %+v", got, whole)
	}
	if slim.Annotations["note"] != "" || slim.ManagedFields != nil || slim.Spec.Containers != nil || len(slim.Status.ContainerStatuses) != 1 || len(slim.Status.Conditions) != 1 {
		t.Errorf("kept %+v", slim)
	}
	if out, err := slimPod("tombstone"); err != nil || out != "tombstone" {
		t.Errorf("got %v, %v", out, err)
	}
}
