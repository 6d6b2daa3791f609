// Package sidecar implements the semantics of a SidecarSet for a Pod as pure functions: injection,
// the record in the Pod's annotations, and in-place updates of images.
package sidecar

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

// Annotations and labels with the names that OpenKruise uses.
const (
	// AnnotationHash and AnnotationHashWithoutImage contain the hashes of the sidecars. On a
	// SidecarSet, they are the hashes at admission. On a Pod, they are a JSON object with an entry
	// for each SidecarSet.
	AnnotationHash             = "kruise.io/sidecarset-hash"
	AnnotationHashWithoutImage = "kruise.io/sidecarset-hash-without-image"
	// AnnotationInPlaceUpdate is a JSON object on Pods. It maps SidecarSet and container to the ID
	// of the container with the old image.
	AnnotationInPlaceUpdate = "kruise.io/sidecarset-inplace-update-state"
	// LabelInjected is on every Pod with sidecars. The controller watches only these Pods.
	LabelInjected = "kruise.io/sidecarset-injected"
	// injectedEnv is an environment variable of every injected container, with the value "true".
	injectedEnv = "IS_INJECTED"
)

// Hashes identify the spec of a SidecarSet, with and without the images.
type Hashes struct{ All, WithoutImage string }

// HashesOf returns the hashes of a spec. They ignore selector, paused, and imagePullPolicy.
func HashesOf(spec *v1alpha1.SidecarSetSpec) Hashes {
	spec = spec.DeepCopy()
	hash := func() string {
		// Decoded objects can always be encoded.
		raw, _ := json.Marshal([]any{spec.Containers, spec.Volumes})
		sum := sha256.Sum256(raw)
		return hex.EncodeToString(sum[:16])
	}
	for i := range spec.Containers {
		spec.Containers[i].ImagePullPolicy = ""
	}
	all := hash()
	for i := range spec.Containers {
		spec.Containers[i].Image = ""
	}
	return Hashes{All: all, WithoutImage: hash()}
}

// Admit records on a SidecarSet that the API server accepts its containers and volumes.
func Admit(set *v1alpha1.SidecarSet) {
	hashes := HashesOf(&set.Spec)
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, AnnotationHash, hashes.All)
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, AnnotationHashWithoutImage, hashes.WithoutImage)
}

// Admitted reports whether a SidecarSet is unchanged since its webhook admitted it. Any other
// SidecarSet could make the API server reject Pods.
func Admitted(set *v1alpha1.SidecarSet) bool {
	return set.Annotations[AnnotationHash] == HashesOf(&set.Spec).All
}

// Selector returns the selector of a SidecarSet. A missing, empty, or invalid selector selects
// nothing.
func Selector(set *v1alpha1.SidecarSet) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || selector.Empty() {
		return labels.Nothing()
	}
	return selector
}

// Recorded returns the hashes of the sidecars in a Pod, by the name of the SidecarSet.
func Recorded(pod metav1.Object) map[string]Hashes {
	out := map[string]Hashes{}
	without := entries[string](pod, AnnotationHashWithoutImage)
	for name, all := range entries[string](pod, AnnotationHash) {
		out[name] = Hashes{All: all, WithoutImage: without[name]}
	}
	return out
}

// Replaced returns the containers of a Pod whose image was updated in place, with their previous
// IDs.
func Replaced(pod metav1.Object) map[string]string {
	out := map[string]string{}
	for _, containers := range entries[map[string]string](pod, AnnotationInPlaceUpdate) {
		maps.Copy(out, containers)
	}
	return out
}

// record records on a Pod that it carries the sidecars of a SidecarSet.
func record(pod *corev1.Pod, name string, hashes Hashes) {
	setEntry(pod, AnnotationHash, name, hashes.All)
	setEntry(pod, AnnotationHashWithoutImage, name, hashes.WithoutImage)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, LabelInjected, "true")
}

// entries reads an annotation that is a JSON object. It returns no entries if the annotation is
// invalid.
func entries[T any](pod metav1.Object, key string) map[string]T {
	out := map[string]T{}
	if text := pod.GetAnnotations()[key]; text != "" && json.Unmarshal([]byte(text), &out) != nil || out == nil {
		return map[string]T{}
	}
	return out
}

func setEntry[T any](pod *corev1.Pod, key, name string, value T) {
	all := entries[T](pod, key)
	all[name] = value
	raw, _ := json.Marshal(all) // maps of strings, with sorted keys
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, string(raw))
}

// Inject returns a Pod with the sidecars of all SidecarSets that select it, in the order of their
// names, and warnings for the client that creates it. It is idempotent. It omits a SidecarSet that
// would make the API server reject the Pod: a Pod without a sidecar is better than no Pod.
func Inject(pod *corev1.Pod, sets []v1alpha1.SidecarSet) (*corev1.Pod, []string) {
	out := pod.DeepCopy()
	if _, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; isMirror {
		return out, nil // the kubelet already runs it unchanged
	}
	var warnings []string
	sets = slices.SortedFunc(slices.Values(sets), func(a, b v1alpha1.SidecarSet) int { return cmp.Compare(a.Name, b.Name) })
	for i := range sets {
		set := &sets[i]
		if !set.DeletionTimestamp.IsZero() || !Selector(set).Matches(labels.Set(pod.Labels)) {
			continue
		}
		if problem := inject(out, set.DeepCopy()); problem != "" {
			warnings = append(warnings, fmt.Sprintf("SidecarSet %q is not injected: %s", set.Name, problem))
		}
	}
	return out, warnings
}

// inject adds the sidecars of one SidecarSet to a Pod, or returns why it cannot. It preserves
// changes that other clients made to existing sidecars, unless the SidecarSet has changed.
func inject(pod *corev1.Pod, set *v1alpha1.SidecarSet) (problem string) {
	if !Admitted(set) {
		return "it was stored without its webhook; apply it again"
	}
	hashes := HashesOf(&set.Spec)
	recorded, isOurs := Recorded(pod)[set.Name]
	if !isOurs {
		if problem := conflict(pod, set); problem != "" {
			return problem
		}
	}
	for _, container := range set.Spec.Containers {
		if !slices.ContainsFunc(container.Env, func(env corev1.EnvVar) bool { return env.Name == injectedEnv }) {
			container.Env = append(container.Env, corev1.EnvVar{Name: injectedEnv, Value: "true"})
		}
		if at := indexOf(pod.Spec.Containers, container.Name); at < 0 {
			pod.Spec.Containers = append(pod.Spec.Containers, container)
		} else if recorded != hashes {
			pod.Spec.Containers[at] = container
		}
	}
	for _, volume := range set.Spec.Volumes {
		if at := indexOfVolume(pod.Spec.Volumes, volume.Name); at < 0 {
			pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
		} else if recorded != hashes {
			pod.Spec.Volumes[at] = volume
		}
	}
	record(pod, set.Name, hashes)
	return ""
}

// conflict returns a description of a container or volume in a Pod whose name the SidecarSet needs,
// or "" if there is none. A volume with the same content is shared and is not a conflict.
func conflict(pod *corev1.Pod, set *v1alpha1.SidecarSet) string {
	for _, container := range set.Spec.Containers {
		if indexOf(pod.Spec.Containers, container.Name) >= 0 || indexOf(pod.Spec.InitContainers, container.Name) >= 0 {
			return fmt.Sprintf("the Pod has a container %q already; rename one of the two", container.Name)
		}
	}
	for _, volume := range set.Spec.Volumes {
		at := indexOfVolume(pod.Spec.Volumes, volume.Name)
		if at >= 0 && !equality.Semantic.DeepEqual(pod.Spec.Volumes[at], volume) {
			return fmt.Sprintf("the Pod has another volume %q already; rename one of the two", volume.Name)
		}
	}
	return ""
}

func indexOf(containers []corev1.Container, name string) int {
	return slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
}

func indexOfVolume(volumes []corev1.Volume, name string) int {
	return slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == name })
}

// UpdateImages returns a running Pod with the images of a SidecarSet and a record of the update.
// Other fields of a running container cannot be changed.
func UpdateImages(pod *corev1.Pod, set *v1alpha1.SidecarSet) *corev1.Pod {
	out, ids, replaced := pod.DeepCopy(), containerIDs(pod), map[string]string{}
	for _, declared := range set.Spec.Containers {
		at := indexOf(out.Spec.Containers, declared.Name)
		if at >= 0 && out.Spec.Containers[at].Image != declared.Image {
			out.Spec.Containers[at].Image = declared.Image
			replaced[declared.Name] = ids[declared.Name]
		}
	}
	setEntry(out, AnnotationInPlaceUpdate, set.Name, replaced)
	record(out, set.Name, HashesOf(&set.Spec))
	return out
}

// Active reports whether a Pod has not ended and is not being deleted. Other Pods are not counted.
func Active(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp.IsZero() && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// Ready reports whether a Pod is running and ready.
func Ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue && pod.Status.Phase == corev1.PodRunning
		}
	}
	return false
}

// Settled reports whether a Pod runs the images in its spec. Right after an update, a Pod still
// reports that it is ready with the old container. The container's ID reveals this. The image in
// the status does not, because container runtimes can report other image names.
func Settled(pod *corev1.Pod) bool {
	ids := containerIDs(pod)
	for name, before := range Replaced(pod) {
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
