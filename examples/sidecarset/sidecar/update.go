package sidecar

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

// UpdateImages returns a running Pod with the images that a SidecarSet declares and the note that it has them. Nothing else
// of a running Pod's containers can be changed. It does not change the Pod that it is given.
func UpdateImages(pod *corev1.Pod, set *v1alpha1.SidecarSet) *corev1.Pod {
	out := pod.DeepCopy()
	replaced := map[string]string{}
	for i := range set.Spec.Containers {
		declared := &set.Spec.Containers[i]
		container := find(out.Spec.Containers, declared.Name, containerName)
		if container == nil || container.Image == declared.Image {
			continue
		}
		container.Image = declared.Image
		replaced[declared.Name] = containerIDs(pod)[declared.Name]
	}
	record(out, set.Name, HashesOf(&set.Spec), replaced)
	return out
}

// Active tells whether a Pod counts: it does not end and has not ended.
func Active(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp.IsZero() && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// Ready tells whether a Pod runs and is ready.
func Ready(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Settled tells whether a Pod runs the images that it declares. After an image was replaced, a Pod reports for a moment
// that it is ready, because the kubelet has not stopped the old container yet. The image in the status does not tell: the
// container runtime has names of its own for images.
func Settled(pod *corev1.Pod) bool {
	replaced := Replaced(pod.Annotations)
	if len(replaced) == 0 {
		return true
	}
	ids := containerIDs(pod)
	for name, before := range replaced {
		if ids[name] == before {
			return false
		}
	}
	return true
}

func containerIDs(pod *corev1.Pod) map[string]string {
	out := make(map[string]string, len(pod.Status.ContainerStatuses))
	for i := range pod.Status.ContainerStatuses {
		out[pod.Status.ContainerStatuses[i].Name] = pod.Status.ContainerStatuses[i].ContainerID
	}
	return out
}
