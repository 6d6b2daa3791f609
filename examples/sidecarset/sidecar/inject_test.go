package sidecar

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

func containerNames(pod *corev1.Pod) string {
	names := make([]string, len(pod.Spec.Containers))
	for i, container := range pod.Spec.Containers {
		names[i] = container.Name
	}
	return strings.Join(names, " ")
}

func TestInjectSample(t *testing.T) {
	set := sampleSet(t)
	got, warnings := Inject(samplePod(t), []v1alpha1.SidecarSet{*set})
	hashes := HashesOf(&set.Spec)
	want := samplePod(t)
	want.Labels[LabelInjected] = "true"
	want.Annotations = map[string]string{
		AnnotationHash:             `{"test-sidecarset":"` + hashes.All + `"}`,
		AnnotationHashWithoutImage: `{"test-sidecarset":"` + hashes.WithoutImage + `"}`,
	}
	want.Spec.Containers = append(want.Spec.Containers, corev1.Container{
		Name: "sidecar1", Image: "busybox", Command: []string{"sleep", "infinity"},
		ImagePullPolicy: corev1.PullAlways, TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: "File",
		Env:          []corev1.EnvVar{{Name: "IS_INJECTED", Value: "true"}},
		VolumeMounts: []corev1.VolumeMount{{Name: "log-volume", MountPath: "/var/log"}},
	})
	want.Spec.Volumes = []corev1.Volume{{Name: "log-volume", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	if diff := cmp.Diff(want, got); diff != "" || len(warnings) != 0 {
		t.Errorf("warnings %v, (-want +got):\n%s", warnings, diff)
	}
}

// Each case is also injected a second time, which must change nothing, and must leave what it was given as it was.
func TestInject(t *testing.T) {
	one := func(sets ...*v1alpha1.SidecarSet) []v1alpha1.SidecarSet {
		var out []v1alpha1.SidecarSet
		for _, set := range sets {
			out = append(out, *set)
		}
		return out
	}
	volume := func(source corev1.VolumeSource) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "log-volume", VolumeSource: source}}
		}
	}
	for name, test := range map[string]struct {
		pod        *corev1.Pod
		sets       []v1alpha1.SidecarSet
		containers string
		warning    string
	}{
		"selected":       {samplePod(t), one(sampleSet(t)), "app sidecar1", ""},
		"other label":    {samplePod(t, func(p *corev1.Pod) { p.Labels["app"] = "other" }), one(sampleSet(t)), "app", ""},
		"no label":       {samplePod(t, func(p *corev1.Pod) { p.Labels = nil }), one(sampleSet(t)), "app", ""},
		"two, by name":   {samplePod(t), one(sampleSet(t, named("b", "of-b")), sampleSet(t, named("a", "of-a"))), "app of-a of-b", ""},
		"empty selector": {samplePod(t), one(sampleSet(t, func(s *v1alpha1.SidecarSet) { s.Spec.Selector = &metav1.LabelSelector{} })), "app", ""},
		"no selector":    {samplePod(t), one(sampleSet(t, func(s *v1alpha1.SidecarSet) { s.Spec.Selector = nil })), "app", ""},
		"leaving set":    {samplePod(t), one(sampleSet(t, func(s *v1alpha1.SidecarSet) { s.DeletionTimestamp = ptr.To(metav1.Now()) })), "app", ""},
		"paused set":     {samplePod(t), one(sampleSet(t, func(s *v1alpha1.SidecarSet) { s.Spec.Paused = true })), "app sidecar1", ""},
		"opted out":      {samplePod(t, func(p *corev1.Pod) { p.Labels[LabelInjection] = InjectionDisabled }), one(sampleSet(t)), "app", ""},
		"mirror of a static Pod": {
			samplePod(t, func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }), one(sampleSet(t)), "app", "",
		},
		"container of that name": {
			samplePod(t, func(p *corev1.Pod) { p.Spec.Containers[0].Name = "sidecar1" }), one(sampleSet(t)), "sidecar1",
			`SidecarSet "test-sidecarset" is not injected: the Pod has a container "sidecar1" already; rename one of the two`,
		},
		"init container of that name": {
			samplePod(t, func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "sidecar1"}} }), one(sampleSet(t)), "app",
			`SidecarSet "test-sidecarset" is not injected: the Pod has a container "sidecar1" already; rename one of the two`,
		},
		"two sets with one container": {
			samplePod(t), one(sampleSet(t, named("a", "log")), sampleSet(t, named("b", "log"))), "app log",
			`SidecarSet "b" is not injected: the Pod has a container "log" already; rename one of the two`,
		},
		"the same volume": {
			samplePod(t, volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})), one(sampleSet(t)), "app sidecar1", "",
		},
		"another volume": {
			samplePod(t, volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}})), one(sampleSet(t)), "app",
			`SidecarSet "test-sidecarset" is not injected: the Pod has another volume "log-volume" already; rename one of the two`,
		},
		"invalid set beside a valid one": {
			samplePod(t), one(sampleSet(t, withImage("")), sampleSet(t, named("b", "of-b"))), "app of-b",
			`SidecarSet "test-sidecarset" is not injected: it is not valid: spec.containers[0].image: Required value: a sidecar has no image of its own; write for example busybox:1.36`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			given, sets := test.pod.DeepCopy(), one()
			for i := range test.sets {
				sets = append(sets, *test.sets[i].DeepCopy())
			}
			got, warnings := Inject(test.pod, test.sets)
			if containerNames(got) != test.containers || strings.Join(warnings, "\n") != test.warning {
				t.Errorf("got containers %q with warnings %q", containerNames(got), warnings)
			}
			if diff := cmp.Diff(given, test.pod) + cmp.Diff(sets, test.sets); diff != "" {
				t.Errorf("what was given changed:\n%s", diff)
			}
			twice, _ := Inject(got, test.sets)
			if diff := cmp.Diff(got, twice); diff != "" {
				t.Errorf("done twice:\n%s", diff)
			}
			slices.Reverse(test.sets)
			if reversed, _ := Inject(given, test.sets); !cmp.Equal(got, reversed) {
				t.Errorf("the order of the SidecarSets matters:\n%s", cmp.Diff(got, reversed))
			}
		})
	}
}

// Between two invocations other webhooks, and the API server's own plugins, give the sidecar what they give every
// container; that stays.
func TestReinvocationKeepsWhatOthersAdded(t *testing.T) {
	sets := []v1alpha1.SidecarSet{*sampleSet(t)}
	pod, _ := Inject(samplePod(t), sets)
	pod.Spec.Containers[1].VolumeMounts = append(pod.Spec.Containers[1].VolumeMounts, corev1.VolumeMount{Name: "token", MountPath: "/token"})
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "mesh"})
	if again, warnings := Inject(pod, sets); !cmp.Equal(pod, again) || len(warnings) != 0 {
		t.Errorf("%v\n%s", warnings, cmp.Diff(pod, again))
	}
}

// A manifest that was copied from a running Pod gets the sidecars of now, once.
func TestCopiedManifest(t *testing.T) {
	copied, _ := Inject(samplePod(t), []v1alpha1.SidecarSet{*sampleSet(t)})
	set := sampleSet(t, withImage("busybox:1.36"), func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Command = []string{"sleep", "1d"} })
	got, warnings := Inject(copied, []v1alpha1.SidecarSet{*set})
	if containerNames(got) != "app sidecar1" || len(warnings) != 0 {
		t.Fatalf("got containers %q with warnings %q", containerNames(got), warnings)
	}
	if sidecar := got.Spec.Containers[1]; sidecar.Image != "busybox:1.36" || sidecar.Command[1] != "1d" {
		t.Errorf("got %+v", sidecar)
	}
	if Recorded(got.Annotations)["test-sidecarset"] != HashesOf(&set.Spec) {
		t.Errorf("got %v", got.Annotations)
	}
}

func TestExcludedNamespace(t *testing.T) {
	for _, test := range []struct {
		namespace, own string
		want           bool
	}{
		{"kube-system", "", true},
		{"kube-public", "", true},
		{"kube-node-lease", "", true},
		{"operators", "operators", true},
		{"operators", "", false},
		{"default", "operators", false},
		{"", "", false},
	} {
		if got := ExcludedNamespace(test.namespace, test.own); got != test.want {
			t.Errorf("%q for an operator in %q: got %t", test.namespace, test.own, got)
		}
	}
}
