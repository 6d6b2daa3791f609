package sidecar

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

type (
	sets    = []v1alpha1.SidecarSet
	editSet = func(*v1alpha1.SidecarSet)
)

// newSets returns the SidecarSet of the document once for each edit, edited and then admitted.
func newSets(t *testing.T, edits ...editSet) sets {
	t.Helper()
	raw, err := os.ReadFile("../sample/sidecarset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := make(sets, len(edits))
	for i, edit := range edits {
		if err := yaml.UnmarshalStrict(raw, &out[i]); err != nil {
			t.Fatal(err)
		}
		edit(&out[i])
		Admit(&out[i])
	}
	return out
}

func sample(*v1alpha1.SidecarSet) {}

func named(name, container string) editSet {
	return func(set *v1alpha1.SidecarSet) { set.Name, set.Spec.Containers[0].Name = name, container }
}

func newPod(edit func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "nginx"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx"}}
	if edit != nil {
		edit(pod)
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

// Each case is also injected a second time, and with the SidecarSets in another order, which must change nothing.
func TestInject(t *testing.T) {
	volume := func(source corev1.VolumeSource) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.Volumes = []corev1.Volume{{Name: "log-volume", VolumeSource: source}} }
	}
	same, another := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, corev1.VolumeSource{}
	one, changed := newSets(t, sample), newSets(t, sample, named("b", "of-b"))
	changed[0].Spec.Containers[0].Image = ""
	const used = `the Pod has a container "sidecar1" already; rename one of the two`
	for name, test := range map[string]struct {
		pod           func(*corev1.Pod)
		sets          sets
		want, problem string
	}{
		"selected":       {nil, one, "app sidecar1", ""},
		"other label":    {func(p *corev1.Pod) { p.Labels["app"] = "other" }, one, "app", ""},
		"two, by name":   {nil, newSets(t, named("b", "of-b"), named("a", "of-a")), "app of-a of-b", ""},
		"empty selector": {nil, newSets(t, func(s *v1alpha1.SidecarSet) { s.Spec.Selector = &metav1.LabelSelector{} }), "app", ""},
		"no selector":    {nil, newSets(t, func(s *v1alpha1.SidecarSet) { s.Spec.Selector = nil }), "app", ""},
		"deleted":        {nil, newSets(t, func(s *v1alpha1.SidecarSet) { s.DeletionTimestamp = &metav1.Time{Time: time.Now()} }), "app", ""},
		"paused":         {nil, newSets(t, func(s *v1alpha1.SidecarSet) { s.Spec.Paused = true }), "app sidecar1", ""},
		"mirror Pod":     {func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }, one, "app", ""},
		"container name": {func(p *corev1.Pod) { p.Spec.Containers[0].Name = "sidecar1" }, one, "sidecar1", used},
		"init container": {func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "sidecar1"}} }, one, "app", used},
		"same volume":    {volume(same), one, "app sidecar1", ""},
		"another volume": {volume(another), one, "app", `the Pod has another volume "log-volume" already; rename one of the two`},
		"not admitted":   {nil, changed, "app of-b", "it was stored without its webhook; apply it again"},
	} {
		t.Run(name, func(t *testing.T) {
			pod, given := newPod(test.pod), newPod(test.pod)
			got, warnings := Inject(pod, test.sets)
			var warned []string
			if test.problem != "" {
				warned = []string{`SidecarSet "test-sidecarset" is not injected: ` + test.problem}
			}
			if containers(got) != test.want || !slices.Equal(warnings, warned) {
				t.Errorf("got containers %q with warnings %q", containers(got), warnings)
			}
			if diff := cmp.Diff(given, pod); diff != "" {
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

// Invoked again, the webhook keeps what others gave the sidecar. A manifest copied from a running Pod gets the current sidecars.
func TestInjectAgain(t *testing.T) {
	pod, _ := Inject(newPod(nil), newSets(t, sample))
	pod.Spec.Containers[1].VolumeMounts = append(pod.Spec.Containers[1].VolumeMounts, corev1.VolumeMount{Name: "token", MountPath: "/token"})
	if again, warnings := Inject(pod, newSets(t, sample)); !cmp.Equal(pod, again) || len(warnings) != 0 {
		t.Errorf("%v\n%s", warnings, cmp.Diff(pod, again))
	}
	next := newSets(t, func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Command = []string{"sleep", "1d"} })
	copied, warnings := Inject(pod, next)
	if containers(copied) != "app sidecar1" || len(warnings) != 0 || copied.Spec.Containers[1].Command[1] != "1d" {
		t.Errorf("%v\n%+v", warnings, copied.Spec.Containers)
	}
	if Recorded(copied)[next[0].Name] != HashesOf(&next[0].Spec) {
		t.Errorf("got %v", copied.Annotations)
	}
}

// Only the image is replaced, and the Pod is settled once the old container is gone.
func TestUpdateImages(t *testing.T) {
	pod, _ := Inject(newPod(nil), newSets(t, sample))
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "sidecar1", ContainerID: "old"}}
	next := &newSets(t, func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Image = "busybox:1.36" })[0]
	updated := UpdateImages(pod, next)
	want := pod.DeepCopy().Spec
	want.Containers[1].Image = "busybox:1.36"
	if diff := cmp.Diff(want, updated.Spec); diff != "" || Recorded(updated)[next.Name] != HashesOf(&next.Spec) {
		t.Errorf("%s\n%v", diff, updated.Annotations)
	}
	if Settled(updated) {
		t.Error("the old container runs")
	}
	updated.Status.ContainerStatuses[0].ContainerID = "new"
	if !Settled(updated) {
		t.Error("the new container runs")
	}
	if recorded, now := Recorded(pod)[next.Name], HashesOf(&next.Spec); recorded.WithoutImage != now.WithoutImage || recorded.All == now.All {
		t.Errorf("%v, %v", recorded, now)
	}
	updated.Annotations[AnnotationHash], updated.Annotations[AnnotationInPlaceUpdate] = "{", "null"
	if len(Recorded(updated)) != 0 || !Settled(updated) {
		t.Error("broken annotations say something")
	}
}
