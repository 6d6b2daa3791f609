package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

// newSet returns an admitted SidecarSet after changes: old has another image, any another command.
func newSet(changes ...string) *v1alpha1.SidecarSet {
	set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	set.Spec.Containers = []corev1.Container{{Name: "sidecar", Image: "new", Command: []string{"run"}}}
	if slices.Contains(changes, "old") {
		set.Spec.Containers[0].Image = "old"
	}
	if slices.Contains(changes, "any") {
		set.Spec.Containers[0].Command = []string{"x"}
	}
	sidecar.Admit(set)
	return set
}

// newPod returns what is cached of a Pod with the sidecar, as declared or as of an old or any other SidecarSet, that is ready, unready,
// unsettled, ended or unselected: old-ready.
func newPod(t *testing.T, name, state string) corev1.Pod {
	t.Helper()
	words := strings.Split(state, "-")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}}}
	pod, _ = sidecar.Inject(pod, []v1alpha1.SidecarSet{*newSet(words...)})
	pod.Status.Phase = corev1.PodRunning
	status := corev1.ConditionTrue
	switch words[len(words)-1] {
	case "unready":
		status = corev1.ConditionFalse
	case "unsettled":
		pod.Annotations[sidecar.AnnotationInPlaceUpdate] = `{"set":{"sidecar":"id"}}`
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "sidecar", ContainerID: "id"}}
	case "ended":
		pod.Status.Phase = corev1.PodSucceeded
	case "unselected":
		delete(pod.Labels, "a")
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	slim, err := slimPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	return *slim.(*corev1.Pod)
}

// Which Pod is updated next, and which one has to become ready before.
func TestCountPods(t *testing.T) {
	for states, want := range map[string]string{
		"ready unready ended unselected": "2 matched, 1 ready, [2 0 0]",
		"old-ready old-ready":            "2 matched, 2 ready, [0 2 0], next 0",
		"old-ready old-unready":          "2 matched, 1 ready, [0 2 0], next 1",
		"old-ready unready":              "2 matched, 1 ready, [1 1 0], waiting 1",
		"old-unready unsettled":          "2 matched, 1 ready, [1 1 0], waiting 1",
		"old-ready any-unready":          "2 matched, 1 ready, [0 1 1], waiting 1",
		"any-ready any-unready":          "2 matched, 1 ready, [0 0 2]",
	} {
		var pods []corev1.Pod
		for i, state := range strings.Fields(states) {
			pods = append(pods, newPod(t, fmt.Sprint(i), state))
		}
		counts := countPods(newSet(), pods)
		got := fmt.Sprintf("%d matched, %d ready, %v", counts.matched, counts.ready, counts.of)
		if counts.next != nil {
			got += ", next " + counts.next.Name
		}
		if counts.waiting != nil {
			got += ", waiting " + counts.waiting.Name
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", states, got, want)
		}
	}
}

func TestComputeStatus(t *testing.T) {
	waiting := newPod(t, "0", "unready")
	paused, changed := newSet(), newSet()
	paused.Spec.Paused, changed.Spec.Containers[0].Image = true, "unseen"
	behind := counts{of: [3]int32{outdated: 1}}
	for _, test := range []struct {
		set    *v1alpha1.SidecarSet
		counts counts
		err    error
		want   string
	}{
		{newSet(), counts{of: [3]int32{updated: 1}}, nil, ""},
		{newSet(), counts{of: [3]int32{notUpdatable: 1}}, nil, "NotUpdatableInPlace=True OtherFieldsChanged"},
		{newSet(), behind, nil, "Updating=True UpdateInProgress"},
		{newSet(), counts{of: behind.of, waiting: &waiting}, nil, "Updating=True WaitingForPod"},
		{newSet(), behind, errors.New("refused"), "Updating=False UpdateFailed"},
		{paused, behind, nil, "Updating=False Paused"},
		{changed, behind, nil, "Updating=False NotAdmitted"},
	} {
		// What is no longer true goes.
		test.set.Status.Conditions = []metav1.Condition{{Type: "NotUpdatableInPlace"}, {Type: "Updating"}}
		got := ""
		for _, condition := range computeStatus(test.set, test.counts, test.err).Conditions {
			got += fmt.Sprintf("%s=%s %s", condition.Type, condition.Status, condition.Reason)
		}
		if got != test.want {
			t.Errorf("%+v: got %q, want %q", test.counts, got, test.want)
		}
	}
}

// An annotation that is longer than any that the webhook writes is not read.
func TestSlimPodIsBounded(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Annotations = map[string]string{sidecar.AnnotationHash: fmt.Sprintf(`{"set":"%*s"}`, maxRecord, "x")}
	slim, err := slimPod(pod)
	if err != nil || len(setsOf(slim.(*corev1.Pod))) != 0 {
		t.Errorf("%v, %v", slim, err)
	}
}
