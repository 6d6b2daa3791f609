package sidecar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

// newSet returns a SidecarSet for Pods with app=nginx. It applies the changes and then admits it.
func newSet(changes ...func(*v1alpha1.SidecarSet)) v1alpha1.SidecarSet {
	set := v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx"}}
	set.Spec.Containers = []corev1.Container{{Name: "sidecar1", Image: "busybox"}}
	set.Spec.Volumes = []corev1.Volume{{Name: "log-volume", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	for _, change := range changes {
		change(&set)
	}
	Admit(&set)
	return set
}

func newPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "nginx"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx"}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func containers(pod *corev1.Pod) string {
	var names []string
	for _, container := range pod.Spec.Containers {
		names = append(names, container.Name)
	}
	return strings.Join(names, " ")
}

// TestInject injects each case a second time, and with the SidecarSets in reverse order. Both must
// have the same result.
func TestInject(t *testing.T) {
	named := func(name, container string) func(*v1alpha1.SidecarSet) {
		return func(set *v1alpha1.SidecarSet) { set.Name, set.Spec.Containers[0].Name = name, container }
	}
	volume := func(source corev1.VolumeSource) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.Volumes = []corev1.Volume{{Name: "log-volume", VolumeSource: source}} }
	}
	type sets = []v1alpha1.SidecarSet
	sample, mirror := sets{newSet()}, map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	changed := newSet()
	changed.Spec.Containers[0].Image = ""
	inUse := `SidecarSet "set" is not injected: the Pod has a container "sidecar1" already; rename one of the two`
	for name, test := range map[string]struct {
		pod              *corev1.Pod
		sets             sets
		want, wantWarned string
	}{
		"selected":       {newPod(), sample, "app sidecar1", ""},
		"other label":    {newPod(func(p *corev1.Pod) { p.Labels["app"] = "other" }), sample, "app", ""},
		"two, by name":   {newPod(), sets{newSet(named("b", "of-b")), newSet(named("a", "of-a"))}, "app of-a of-b", ""},
		"empty selector": {newPod(), sets{newSet(func(s *v1alpha1.SidecarSet) { s.Spec.Selector = &metav1.LabelSelector{} })}, "app", ""},
		"no selector":    {newPod(), sets{newSet(func(s *v1alpha1.SidecarSet) { s.Spec.Selector = nil })}, "app", ""},
		"deleted":        {newPod(), sets{newSet(func(s *v1alpha1.SidecarSet) { s.DeletionTimestamp = ptr.To(metav1.Now()) })}, "app", ""},
		"paused":         {newPod(), sets{newSet(func(s *v1alpha1.SidecarSet) { s.Spec.Paused = true })}, "app sidecar1", ""},
		"mirror Pod":     {newPod(func(p *corev1.Pod) { p.Annotations = mirror }), sample, "app", ""},
		"container name": {newPod(func(p *corev1.Pod) { p.Spec.Containers[0].Name = "sidecar1" }), sample, "sidecar1", inUse},
		"init container": {newPod(func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "sidecar1"}} }), sample, "app", inUse},
		"same volume":    {newPod(volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})), sample, "app sidecar1", ""},
		"another volume": {
			newPod(volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}})), sample, "app",
			`SidecarSet "set" is not injected: the Pod has another volume "log-volume" already; rename one of the two`,
		},
		"not admitted": {
			newPod(),
			sets{changed, newSet(named("b", "of-b"))},
			"app of-b",
			`SidecarSet "set" is not injected: it was stored without its webhook; apply it again`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := test.pod.DeepCopy()
			got, warnings := Inject(test.pod, test.sets)
			if containers(got) != test.want || strings.Join(warnings, "\n") != test.wantWarned {
				t.Errorf("got containers %q with warnings %q", containers(got), warnings)
			}
			if diff := cmp.Diff(given, test.pod); diff != "" {
				t.Errorf("the Pod that was given changed:\n%s", diff)
			}
			if twice, _ := Inject(got, test.sets); !cmp.Equal(got, twice) {
				t.Errorf("twice:\n%s", cmp.Diff(got, twice))
			}
			slices.Reverse(test.sets)
			if reversed, _ := Inject(given, test.sets); !cmp.Equal(got, reversed) {
				t.Errorf("the order matters:\n%s", cmp.Diff(got, reversed))
			}
		})
	}
}

// TestInjected checks that a Pod gets the containers with the environment variable IS_INJECTED, the
// volumes, and the hashes of the SidecarSet.
func TestInjected(t *testing.T) {
	set := newSet()
	pod, _ := Inject(newPod(), []v1alpha1.SidecarSet{set})
	want := newPod(func(pod *corev1.Pod) {
		pod.Labels[LabelInjected] = "true"
		pod.Annotations = map[string]string{}
		for _, key := range []string{AnnotationHash, AnnotationHashWithoutImage} {
			pod.Annotations[key] = fmt.Sprintf(`{"set":%q}`, set.Annotations[key])
		}
		injected := *set.Spec.Containers[0].DeepCopy()
		injected.Env = []corev1.EnvVar{{Name: "IS_INJECTED", Value: "true"}}
		pod.Spec.Containers = append(pod.Spec.Containers, injected)
		pod.Spec.Volumes = set.Spec.Volumes
	})
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestInjectAgain checks that a repeated injection preserves changes to the sidecar, and that a
// manifest copied from a running Pod gets the current sidecars.
func TestInjectAgain(t *testing.T) {
	pod, _ := Inject(newPod(), []v1alpha1.SidecarSet{newSet()})
	pod.Spec.Containers[1].VolumeMounts = append(pod.Spec.Containers[1].VolumeMounts, corev1.VolumeMount{Name: "token", MountPath: "/token"})
	if again, warnings := Inject(pod, []v1alpha1.SidecarSet{newSet()}); !cmp.Equal(pod, again) || len(warnings) != 0 {
		t.Errorf("%v\n%s", warnings, cmp.Diff(pod, again))
	}
	next := newSet(func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Command = []string{"sleep", "1d"} })
	copied, warnings := Inject(pod, []v1alpha1.SidecarSet{next})
	if containers(copied) != "app sidecar1" || len(warnings) != 0 || copied.Spec.Containers[1].Command[1] != "1d" {
		t.Errorf("%v\n%+v", warnings, copied.Spec.Containers)
	}
	if Recorded(copied)[next.Name] != HashesOf(&next.Spec) {
		t.Errorf("got %v", copied.Annotations)
	}
}

// slimPod returns the cached form of a Pod with the sidecar. state is an optional version of the
// SidecarSet, old or any, and the state of the Pod: ready, unready, unsettled, ended, or
// unselected. An example is old-ready.
func slimPod(name, state string) corev1.Pod {
	words := strings.Split(state, "-")
	pod, _ := Inject(newPod(), []v1alpha1.SidecarSet{newSet(func(set *v1alpha1.SidecarSet) {
		if slices.Contains(words, "old") {
			set.Spec.Containers[0].Image = "old"
		}
		if slices.Contains(words, "any") {
			set.Spec.Containers[0].Command = []string{"x"}
		}
	})})
	pod.Name = name
	pod.Status.Phase = corev1.PodRunning
	status := corev1.ConditionTrue
	switch words[len(words)-1] {
	case "unready":
		status = corev1.ConditionFalse
	case "unsettled":
		pod.Annotations[AnnotationInPlaceUpdate] = `{"set":{"sidecar1":"id"}}`
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "sidecar1", ContainerID: "id"}}
	case "ended":
		pod.Status.Phase = corev1.PodSucceeded
	case "unselected":
		delete(pod.Labels, "app")
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	slim, _ := Slim(pod)
	return *slim.(*corev1.Pod)
}

// TestStatus checks which Pod is updated next, which Pod must become ready first, and the resulting
// status.
func TestStatus(t *testing.T) {
	paused := newSet(func(set *v1alpha1.SidecarSet) { set.Spec.Paused = true })
	changed := newSet()
	changed.Spec.Containers[0].Image = "unseen"
	for _, test := range []struct {
		states string
		set    v1alpha1.SidecarSet
		err    error
		want   string
	}{
		{"ready unready ended unselected", newSet(), nil, "2 matched, 1 ready, [2 0 0]"},
		{"old-ready old-ready", newSet(), nil, "2 matched, 2 ready, [0 2 0], next 0, Updating=True UpdateInProgress"},
		{"old-ready old-unready", newSet(), nil, "2 matched, 1 ready, [0 2 0], next 1, Updating=True UpdateInProgress"},
		{"old-ready unready", newSet(), nil, "2 matched, 1 ready, [1 1 0], waiting 1, Updating=True WaitingForPod"},
		{"old-unready unsettled", newSet(), nil, "2 matched, 1 ready, [1 1 0], waiting 1, Updating=True WaitingForPod"},
		{
			"old-ready any-unready", newSet(), nil,
			"2 matched, 1 ready, [0 1 1], waiting 1, NotUpdatableInPlace=True OtherFieldsChanged, Updating=True WaitingForPod",
		},
		{"any-ready any-unready", newSet(), nil, "2 matched, 1 ready, [0 0 2], NotUpdatableInPlace=True OtherFieldsChanged"},
		{"old-ready", newSet(), errors.New("refused"), "1 matched, 1 ready, [0 1 0], next 0, Updating=False UpdateFailed"},
		{"old-ready", paused, nil, "1 matched, 1 ready, [0 1 0], next 0, Updating=False Paused"},
		{"old-ready", changed, nil, "1 matched, 1 ready, [0 1 0], next 0, Updating=False NotAdmitted"},
	} {
		var pods []corev1.Pod
		for i, state := range strings.Fields(test.states) {
			pods = append(pods, slimPod(fmt.Sprint(i), state))
		}
		// Obsolete conditions are removed.
		test.set.Status.Conditions = []metav1.Condition{{Type: "NotUpdatableInPlace"}, {Type: "Updating"}}
		counts := Count(&test.set, pods)
		status := Status(&test.set, counts, test.err)
		got := fmt.Sprintf("%d matched, %d ready, %v", status.MatchedPods, status.ReadyPods, counts.of)
		if counts.Next != nil {
			got += ", next " + counts.Next.Name
		}
		if counts.waiting != nil {
			got += ", waiting " + counts.waiting.Name
		}
		for _, condition := range status.Conditions {
			got += fmt.Sprintf(", %s=%s %s", condition.Type, condition.Status, condition.Reason)
		}
		if got != test.want || status.UpdatedPods != counts.of[updated] {
			t.Errorf("%s: got %s, want %s", test.states, got, test.want)
		}
	}
}

// TestBadAnnotations checks that invalid annotations, and annotations longer than any from the
// webhook, are ignored.
func TestBadAnnotations(t *testing.T) {
	for _, bad := range []string{"{", "null", fmt.Sprintf(`{"set":"%*s"}`, maxRecord, "x")} {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{AnnotationHash: bad, AnnotationInPlaceUpdate: bad}
		slim, err := Slim(pod)
		if out := slim.(*corev1.Pod); err != nil || len(Recorded(out)) != 0 || !Settled(out) {
			t.Errorf("%.10s: %v, %v", bad, out, err)
		}
	}
}
