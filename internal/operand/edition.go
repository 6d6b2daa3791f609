package operand

import corev1 "k8s.io/api/core/v1"

// backward has a function for each edition of the Pod template except the newest. It converts a
// template of the next edition to that edition. Edition 0 is the edition of release 0.1.0. A
// release that renders another Pod template from an unchanged spec must add a function, so that
// instances that wait for a rollout slot, are blocked, or were rolled back retain their Pods. The
// image and nginx.conf are part of the record and need no edition.
var backward []func(*corev1.PodTemplateSpec)

// newestEdition returns the edition of this release.
func newestEdition() int { return len(backward) }

// KnownEdition returns the edition of a record, or the newest edition if a later release wrote the
// record.
func KnownEdition(recorded int) int { return max(0, min(recorded, newestEdition())) }

// toEdition converts a template of the newest edition to an earlier edition.
func toEdition(template *corev1.PodTemplateSpec, edition int) {
	for newer := newestEdition() - 1; newer >= edition; newer-- {
		backward[newer](template)
	}
}
