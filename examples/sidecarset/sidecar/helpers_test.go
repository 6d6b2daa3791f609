package sidecar

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

func read[T any](t *testing.T, file string) *T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := yaml.UnmarshalStrict(raw, out); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return out
}

// sampleSet and samplePod are those of the document.
func sampleSet(t *testing.T, change ...func(*v1alpha1.SidecarSet)) *v1alpha1.SidecarSet {
	t.Helper()
	set := read[v1alpha1.SidecarSet](t, "../sample/sidecarset.yaml")
	for _, f := range change {
		f(set)
	}
	return set
}

func samplePod(t *testing.T, change ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := read[corev1.Pod](t, "../sample/pod.yaml")
	pod.Namespace = "default"
	for _, f := range change {
		f(pod)
	}
	return pod
}

func withImage(image string) func(*v1alpha1.SidecarSet) {
	return func(set *v1alpha1.SidecarSet) { set.Spec.Containers[0].Image = image }
}

func named(name, container string) func(*v1alpha1.SidecarSet) {
	return func(set *v1alpha1.SidecarSet) { set.Name, set.Spec.Containers[0].Name = name, container }
}
