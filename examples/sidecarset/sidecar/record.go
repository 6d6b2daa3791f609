package sidecar

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// Recorded returns, by the name of the SidecarSet, the sidecars that a Pod carries, as its annotations say. What cannot be
// read counts as nothing: somebody else wrote it.
func Recorded(annotations map[string]string) map[string]Hashes {
	all := decode[string](annotations[AnnotationHash])
	if len(all) == 0 {
		return nil
	}
	without := decode[string](annotations[AnnotationHashWithoutImage])
	out := make(map[string]Hashes, len(all))
	for name, hash := range all {
		out[name] = Hashes{All: hash, WithoutImage: without[name]}
	}
	return out
}

// Replaced returns the containers of a Pod whose image was replaced in place, with the ID that each had before.
func Replaced(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for _, containers := range decode[map[string]string](annotations[AnnotationInPlaceUpdate]) {
		maps.Copy(out, containers)
	}
	return out
}

// record notes on a Pod that it carries the sidecars of a SidecarSet, and which containers wait for their new image.
func record(pod *corev1.Pod, name string, hashes Hashes, replaced map[string]string) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	set(pod.Annotations, AnnotationHash, name, hashes.All, true)
	set(pod.Annotations, AnnotationHashWithoutImage, name, hashes.WithoutImage, true)
	set(pod.Annotations, AnnotationInPlaceUpdate, name, replaced, len(replaced) > 0)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[LabelInjected] = "true"
}

// set gives the JSON object in an annotation an entry, or takes it away. An annotation without entries goes.
func set[T any](annotations map[string]string, key, name string, value T, keep bool) {
	entries := decode[T](annotations[key])
	if entries == nil {
		entries = map[string]T{}
	}
	if keep {
		entries[name] = value
	} else {
		delete(entries, name)
	}
	if len(entries) == 0 {
		delete(annotations, key)
		return
	}
	annotations[key] = encode(entries)
}

func decode[T any](text string) map[string]T {
	var out map[string]T
	if text == "" || json.Unmarshal([]byte(text), &out) != nil {
		return nil
	}
	return out
}

// encode writes what always can be written, with sorted keys, so that the same entries give the same text.
func encode(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // only strings, maps and types of the API come here
	}
	return string(raw)
}
