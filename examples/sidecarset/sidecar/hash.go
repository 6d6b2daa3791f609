package sidecar

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

// Hashes stand for what a SidecarSet declares. Two are the same where the sidecars are.
type Hashes struct {
	// All is of the containers and volumes.
	All string
	// WithoutImage is of the same without the images.
	WithoutImage string
}

// HashesOf returns the hashes of a spec. Defaults count as if they were declared, so it does not matter whether the webhook
// filled them in. The selector and paused do not count: they change nothing in a Pod. Neither does imagePullPolicy: the
// default of a tag other than latest is another one, and a change of the image would be a change of more than the image.
func HashesOf(spec *v1alpha1.SidecarSetSpec) Hashes {
	spec = spec.DeepCopy()
	Default(spec)
	for i := range spec.Containers {
		spec.Containers[i].ImagePullPolicy = ""
	}
	all := hash(spec)
	for i := range spec.Containers {
		spec.Containers[i].Image = ""
	}
	return Hashes{All: all, WithoutImage: hash(spec)}
}

func hash(spec *v1alpha1.SidecarSetSpec) string {
	sum := sha256.Sum256([]byte(encode(struct {
		Containers []corev1.Container `json:"containers"`
		Volumes    []corev1.Volume    `json:"volumes,omitempty"`
	}{spec.Containers, spec.Volumes})))
	return hex.EncodeToString(sum[:16])
}
