package sidecar

import (
	corev1 "k8s.io/api/core/v1"
)

// Annotations, named as OpenKruise names them. On a SidecarSet each is a hash; on a Pod it is a JSON object with one entry
// for each SidecarSet that the Pod carries the sidecars of.
const (
	// AnnotationHash keeps the hash of the sidecars.
	AnnotationHash = "kruise.io/sidecarset-hash"
	// AnnotationHashWithoutImage keeps the hash of the sidecars without their images: while it is the same, a Pod can be
	// updated in place.
	AnnotationHashWithoutImage = "kruise.io/sidecarset-hash-without-image"
	// AnnotationInPlaceUpdate is on Pods only. It keeps, by SidecarSet and container, the ID that the container had when its
	// image was replaced: as long as the Pod reports that ID, it still runs the old image, ready or not.
	AnnotationInPlaceUpdate = "kruise.io/sidecarset-inplace-update-state"
)

const (
	// LabelInjected is on every Pod that carries sidecars, so that the controller watches these Pods and no others.
	LabelInjected = "kruise.io/sidecarset-injected"
	// LabelInjection with the value InjectionDisabled, on a Pod or on a Namespace, keeps sidecars away from it.
	LabelInjection = "kruise.io/sidecarset-injection"
	// InjectionDisabled is the only value of LabelInjection that means something.
	InjectionDisabled = "disabled"
)

// InjectedEnv is the environment variable that every injected container has, with the value "true".
const InjectedEnv = "IS_INJECTED"

// ExcludedNamespace tells whether Pods of a namespace never get sidecars: those of Kubernetes itself, which the cluster may
// need to get well again, and the operator's own ("" where it runs outside of the cluster).
func ExcludedNamespace(namespace, own string) bool {
	switch namespace {
	case "kube-system", "kube-public", "kube-node-lease":
		return true
	}
	return own != "" && namespace == own
}

// excluded tells whether a Pod gets no sidecars wherever it is: its label says so, or it is the mirror of one that a node
// runs from a file, which is what it is.
func excluded(pod *corev1.Pod) bool {
	_, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return isMirror || pod.Labels[LabelInjection] == InjectionDisabled
}
