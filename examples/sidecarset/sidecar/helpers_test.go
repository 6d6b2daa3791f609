package sidecar

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/test/sample"
)

// sampleSet and samplePod are those of the document.
func sampleSet(t *testing.T, change ...func(*v1alpha1.SidecarSet)) *v1alpha1.SidecarSet {
	t.Helper()
	set := sample.Read[v1alpha1.SidecarSet](t, "../sample/sidecarset.yaml")
	for _, f := range change {
		f(set)
	}
	return set
}

func samplePod(t *testing.T, change ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := sample.Read[corev1.Pod](t, "../sample/pod.yaml")
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
