package operand

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/wellknown"
)

// knownSuffix matches the annotation with the suffix.
var knownSuffix = regexp.MustCompile(`^[0-9a-f]{8}$`)

// NewSuffix returns a random suffix for the names of ConfigMaps, which other clients cannot guess.
func NewSuffix() string {
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never returns an error
	return "-" + hex.EncodeToString(random)
}

// SuffixOf returns the suffix of the ConfigMaps that a Deployment mounts, or "".
func SuffixOf(deployment *appsv1.Deployment) string {
	if deployment == nil || !knownSuffix.MatchString(deployment.Annotations[wellknown.AnnotationContent]) {
		return ""
	}
	return "-" + deployment.Annotations[wellknown.AnnotationContent]
}

// suffixed matches the name of a ConfigMap that ends with a suffix.
var suffixed = regexp.MustCompile(`(-[0-9a-f]{10})-[0-9a-f]{8}$`)

// WithoutSuffix removes the suffixes from the names of the ConfigMaps that Pods mount.
func WithoutSuffix(pod *corev1.PodSpec) {
	for i := range pod.Volumes {
		volume := &pod.Volumes[i]
		if !cached.IsOwnVolume(volume.Name) {
			continue
		}
		if volume.ConfigMap != nil {
			volume.ConfigMap.Name = suffixed.ReplaceAllString(volume.ConfigMap.Name, "$1")
		}
		if volume.Projected == nil {
			continue
		}

		for j := range volume.Projected.Sources {
			if source := volume.Projected.Sources[j].ConfigMap; source != nil {
				source.Name = suffixed.ReplaceAllString(source.Name, "$1")
			}
		}
	}
}
