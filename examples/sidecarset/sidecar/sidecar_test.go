package sidecar

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

// newSet returns the SidecarSet of the document, changed and then admitted.
func newSet(t *testing.T, change func(*v1alpha1.SidecarSet)) v1alpha1.SidecarSet {
	t.Helper()
	raw, err := os.ReadFile("../sample/sidecarset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set := &v1alpha1.SidecarSet{}
	if err := yaml.UnmarshalStrict(raw, set); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(set)
	}
	Admit(set)
	return *set
}

func newPod(change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "nginx"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx"}}
	if change != nil {
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

// Each case is also injected a second time, and with the SidecarSets in another order, which must change nothing.
func TestInject(t *testing.T) {
	named := func(name, container string) func(*v1alpha1.SidecarSet) {
		return func(set *v1alpha1.SidecarSet) { set.Name, set.Spec.Containers[0].Name = name, container }
	}
	volume := func(source corev1.VolumeSource) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.Volumes = []corev1.Volume{{Name: "log-volume", VolumeSource: source}} }
	}
	type sets = []v1alpha1.SidecarSet
	sample, mirror := sets{newSet(t, nil)}, map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	changed := newSet(t, nil)
	changed.Spec.Containers[0].Image = ""
	inUse := `SidecarSet "test-sidecarset" is not injected: the Pod has a container "sidecar1" already; rename one of the two`
	for name, test := range map[string]struct {
		pod              *corev1.Pod
		sets             sets
		want, wantWarned string
	}{
		"selected":       {newPod(nil), sample, "app sidecar1", ""},
		"other label":    {newPod(func(p *corev1.Pod) { p.Labels["app"] = "other" }), sample, "app", ""},
		"two, by name":   {newPod(nil), sets{newSet(t, named("b", "of-b")), newSet(t, named("a", "of-a"))}, "app of-a of-b", ""},
		"empty selector": {newPod(nil), sets{newSet(t, func(s *v1alpha1.SidecarSet) { s.Spec.Selector = &metav1.LabelSelector{} })}, "app", ""},
		"no selector":    {newPod(nil), sets{newSet(t, func(s *v1alpha1.SidecarSet) { s.Spec.Selector = nil })}, "app", ""},
		"deleted":        {newPod(nil), sets{newSet(t, func(s *v1alpha1.SidecarSet) { s.DeletionTimestamp = ptr.To(metav1.Now()) })}, "app", ""},
		"paused":         {newPod(nil), sets{newSet(t, func(s *v1alpha1.SidecarSet) { s.Spec.Paused = true })}, "app sidecar1", ""},
		"mirror Pod":     {newPod(func(p *corev1.Pod) { p.Annotations = mirror }), sample, "app", ""},
		"container name": {newPod(func(p *corev1.Pod) { p.Spec.Containers[0].Name = "sidecar1" }), sample, "sidecar1", inUse},
		"init container": {newPod(func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "sidecar1"}} }), sample, "app", inUse},
		"same volume":    {newPod(volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})), sample, "app sidecar1", ""},
		"another volume": {
			newPod(volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}})), sample, "app",
			`SidecarSet "test-sidecarset" is not injected: the Pod has another volume "log-volume" already; rename one of the two`,
		},
		"not admitted": {
			newPod(nil),
			sets{changed, newSet(t, named("b", "of-b"))},
			"app of-b",
			`SidecarSet "test-sidecarset" is not injected: it was stored without its webhook; apply it again`,
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

// Invoked again, the webhook keeps what others gave the sidecar. A manifest copied from a running Pod gets the current sidecars.
func TestInjectAgain(t *testing.T) {
	pod, _ := Inject(newPod(nil), []v1alpha1.SidecarSet{newSet(t, nil)})
	pod.Spec.Containers[1].VolumeMounts = append(pod.Spec.Containers[1].VolumeMounts, corev1.VolumeMount{Name: "token", MountPath: "/token"})
	if again, warnings := Inject(pod, []v1alpha1.SidecarSet{newSet(t, nil)}); !cmp.Equal(pod, again) || len(warnings) != 0 {
		t.Errorf("%v\n%s", warnings, cmp.Diff(pod, again))
	}
	next := newSet(t, func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Command = []string{"sleep", "1d"} })
	copied, warnings := Inject(pod, []v1alpha1.SidecarSet{next})
	if containers(copied) != "app sidecar1" || len(warnings) != 0 || copied.Spec.Containers[1].Command[1] != "1d" {
		t.Errorf("%v\n%+v", warnings, copied.Spec.Containers)
	}
	if Recorded(copied)[next.Name] != HashesOf(&next.Spec) {
		t.Errorf("got %v", copied.Annotations)
	}
}

// Only the image is replaced, and the Pod is settled once the old container is gone.
func TestUpdateImages(t *testing.T) {
	pod, _ := Inject(newPod(nil), []v1alpha1.SidecarSet{newSet(t, nil)})
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "sidecar1", ContainerID: "old"}}
	next := newSet(t, func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Image = "busybox:1.36" })
	updated := UpdateImages(pod, &next)
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
