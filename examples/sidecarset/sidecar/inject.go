package sidecar

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

// Inject returns a Pod with the sidecars of all SidecarSets that select it, and what its creator should know. It changes
// neither the Pod nor the SidecarSets, and done twice it gives what it gives once.
//
// SidecarSets are taken in the order of their names, whatever the order in which they come. What would make the API server
// refuse the Pod is left out, and told: a SidecarSet that breaks its own rules, and one with the name of a container or
// volume that the Pod has already. A Pod without a sidecar is better than no Pod.
func Inject(pod *corev1.Pod, sets []v1alpha1.SidecarSet) (*corev1.Pod, []string) {
	out := pod.DeepCopy()
	if excluded(pod) {
		return out, nil
	}
	var warnings []string
	for _, set := range selecting(pod, sets) {
		if why := inject(out, set); why != "" {
			warnings = append(warnings, fmt.Sprintf("SidecarSet %q is not injected: %s", set.Name, why))
		}
	}
	return out, warnings
}

// selecting returns the SidecarSets that select a Pod, by name.
func selecting(pod *corev1.Pod, sets []v1alpha1.SidecarSet) []*v1alpha1.SidecarSet {
	var out []*v1alpha1.SidecarSet
	for i := range sets {
		if sets[i].DeletionTimestamp.IsZero() && Selector(&sets[i]).Matches(labels.Set(pod.Labels)) {
			out = append(out, &sets[i])
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.SidecarSet) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Selector returns the selector of a SidecarSet. One that is missing, empty or wrong selects nothing.
func Selector(set *v1alpha1.SidecarSet) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || selector.Empty() {
		return labels.Nothing()
	}
	return selector
}

// inject adds the sidecars of one SidecarSet to a Pod, or returns why not.
func inject(pod *corev1.Pod, set *v1alpha1.SidecarSet) string {
	if errs := Validate(set); len(errs) > 0 {
		return "it is not valid: " + errs.ToAggregate().Error()
	}
	spec := set.Spec.DeepCopy()
	Default(spec)
	hashes := HashesOf(spec)
	recorded, ours := Recorded(pod.Annotations)[set.Name]
	if ours && recorded == hashes && complete(pod, spec) {
		// It is asked again after another webhook changed the Pod, and what that one gave the sidecars stays.
		return ""
	}
	if !ours {
		if taken := inTheWay(pod, spec); taken != "" {
			return taken
		}
	}
	for i := range spec.Containers {
		container := &spec.Containers[i]
		if !slices.ContainsFunc(container.Env, func(env corev1.EnvVar) bool { return env.Name == InjectedEnv }) {
			container.Env = append(container.Env, corev1.EnvVar{Name: InjectedEnv, Value: "true"})
		}
		pod.Spec.Containers = put(pod.Spec.Containers, *container, containerName)
	}
	for _, volume := range spec.Volumes {
		pod.Spec.Volumes = put(pod.Spec.Volumes, volume, volumeName)
	}
	record(pod, set.Name, hashes, nil)
	return ""
}

// complete tells whether a Pod has all containers and volumes of a spec, by name.
func complete(pod *corev1.Pod, spec *v1alpha1.SidecarSetSpec) bool {
	for _, container := range spec.Containers {
		if find(pod.Spec.Containers, container.Name, containerName) == nil {
			return false
		}
	}
	for _, volume := range spec.Volumes {
		if find(pod.Spec.Volumes, volume.Name, volumeName) == nil {
			return false
		}
	}
	return true
}

// inTheWay returns what has a name in the Pod that the SidecarSet needs, "" where nothing has. A volume with the same
// content is shared.
func inTheWay(pod *corev1.Pod, spec *v1alpha1.SidecarSetSpec) string {
	for _, container := range spec.Containers {
		if find(pod.Spec.Containers, container.Name, containerName) != nil || find(pod.Spec.InitContainers, container.Name, containerName) != nil {
			return fmt.Sprintf("the Pod has a container %q already; rename one of the two", container.Name)
		}
	}
	for _, volume := range spec.Volumes {
		if found := find(pod.Spec.Volumes, volume.Name, volumeName); found != nil && !equality.Semantic.DeepEqual(*found, volume) {
			return fmt.Sprintf("the Pod has another volume %q already; rename one of the two", volume.Name)
		}
	}
	return ""
}

func containerName(container *corev1.Container) string { return container.Name }
func volumeName(volume *corev1.Volume) string          { return volume.Name }

// find returns the element of a name, nil where there is none.
func find[T any](list []T, name string, nameOf func(*T) string) *T {
	for i := range list {
		if nameOf(&list[i]) == name {
			return &list[i]
		}
	}
	return nil
}

// put returns a list with an element in the place of the one with its name, or at the end.
func put[T any](list []T, element T, nameOf func(*T) string) []T {
	if found := find(list, nameOf(&element), nameOf); found != nil {
		*found = element
		return list
	}
	return append(list, element)
}
