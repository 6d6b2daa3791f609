package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

func newSet() *v1alpha1.SidecarSet {
	set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	set.Spec.Containers = []corev1.Container{{Name: "sidecar", Image: "new"}}
	sidecar.Admit(set)
	return set
}

// newPods returns a Pod for each state: ready, unready, unsettled or ended, with the declared sidecar, or with the prefix old- another
// image, any- another command.
func newPods(t *testing.T, states ...string) []corev1.Pod {
	t.Helper()
	var out []corev1.Pod
	for i, state := range states {
		version, word, found := strings.Cut(state, "-")
		if !found {
			word = state
		}
		set := newSet()
		switch version {
		case "old":
			set.Spec.Containers[0].Image = "old"
		case "any":
			set.Spec.Containers[0].Command = []string{"x"}
		}
		sidecar.Admit(set)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), Labels: map[string]string{"a": "b"}}}
		pod, _ = sidecar.Inject(pod, []v1alpha1.SidecarSet{*set})
		pod.Status.Phase = corev1.PodRunning
		status := corev1.ConditionTrue
		switch word {
		case "unready":
			status = corev1.ConditionFalse
		case "unsettled":
			pod.Annotations[sidecar.AnnotationInPlaceUpdate] = `{"set":{"sidecar":"id"}}`
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "sidecar", ContainerID: "id"}}
		case "ended":
			pod.Status.Phase = corev1.PodSucceeded
		}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
		slim, err := slimPod(pod)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, *slim.(*corev1.Pod))
	}
	return out
}

// Which Pod is updated next, and which one has to become ready before.
func TestCountPods(t *testing.T) {
	for _, test := range []struct {
		states                  []string
		matched, updated, ready int32
		notUpdatable, outdated  int32
		next, waiting           string
	}{
		{states: []string{"ready", "unready", "ended"}, matched: 2, updated: 2, ready: 1},
		{states: []string{"old-ready", "old-ready"}, matched: 2, ready: 2, outdated: 2, next: "0"},
		{states: []string{"old-ready", "old-unready"}, matched: 2, ready: 1, outdated: 2, next: "1"},
		{states: []string{"old-ready", "unready"}, matched: 2, updated: 1, ready: 1, outdated: 1, waiting: "1"},
		{states: []string{"old-unready", "unsettled"}, matched: 2, updated: 1, ready: 1, outdated: 1, waiting: "1"},
		{states: []string{"old-ready", "any-unready"}, matched: 2, ready: 1, notUpdatable: 1, outdated: 1, waiting: "1"},
		{states: []string{"any-ready", "any-unready"}, matched: 2, ready: 1, notUpdatable: 2},
	} {
		got := countPods(newSet(), newPods(t, test.states...))
		name := func(pod *corev1.Pod) string {
			if pod == nil {
				return ""
			}
			return pod.Name
		}
		want := counts{matched: test.matched, updated: test.updated, ready: test.ready, notUpdatable: test.notUpdatable, outdated: test.outdated}
		if next, waiting := name(got.next), name(got.waiting); next != test.next || waiting != test.waiting {
			t.Errorf("%q: next is %q, waiting for %q", test.states, next, waiting)
		}
		if got.next, got.waiting = nil, nil; got != want {
			t.Errorf("%q: got %+v", test.states, got)
		}
	}
	unselected := newPods(t, "ready")
	unselected[0].Labels = nil
	if got := countPods(newSet(), unselected); got != (counts{}) {
		t.Errorf("a Pod that is not selected: %+v", got)
	}
}

func TestComputeStatus(t *testing.T) {
	waiting := &newPods(t, "unready")[0]
	paused, changed := newSet(), newSet()
	paused.Spec.Paused = true
	changed.Spec.Containers[0].Image = "unseen"
	for _, test := range []struct {
		set    *v1alpha1.SidecarSet
		counts counts
		err    error
		want   []string
	}{
		{newSet(), counts{matched: 1, updated: 1}, nil, nil},
		{newSet(), counts{notUpdatable: 1}, nil, []string{"NotUpdatableInPlace=True OtherFieldsChanged"}},
		{newSet(), counts{outdated: 1}, nil, []string{"Updating=True UpdateInProgress"}},
		{newSet(), counts{outdated: 1, waiting: waiting}, nil, []string{"Updating=True WaitingForPod"}},
		{newSet(), counts{outdated: 1}, errors.New("refused"), []string{"Updating=False UpdateFailed"}},
		{paused, counts{outdated: 1}, nil, []string{"Updating=False Paused"}},
		{changed, counts{outdated: 1}, nil, []string{"Updating=False NotAdmitted"}},
	} {
		// What is no longer true goes.
		test.set.Status.Conditions = []metav1.Condition{{Type: "NotUpdatableInPlace"}, {Type: "Updating"}}
		var got []string
		for _, condition := range computeStatus(test.set, test.counts, test.err).Conditions {
			got = append(got, fmt.Sprintf("%s=%s %s", condition.Type, condition.Status, condition.Reason))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%+v: %s", test.counts, diff)
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
