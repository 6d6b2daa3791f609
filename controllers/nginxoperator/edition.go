package nginxoperator

import corev1 "k8s.io/api/core/v1"

// backward has, for each edition of the Pod template but the newest, the function that makes a template of the next edition one of that
// edition. The editions are counted from 0, which is that of release 0.1.0. A release that makes other Pods of what it made Pods of
// before adds a function: so instances that wait for their turn keep the Pods that they have, and so do those that are blocked or
// were taken back. The image and nginx.conf are recorded by themselves and need no edition.
var backward []func(*corev1.PodTemplateSpec)

// newestEdition returns the edition of what this release declares.
func newestEdition() int { return len(backward) }

// knownEdition returns the edition that a record names, or the newest for one of a later release.
func knownEdition(recorded int) int { return max(0, min(recorded, newestEdition())) }

// toEdition makes a template of the newest edition one of an earlier edition.
func toEdition(template *corev1.PodTemplateSpec, edition int) {
	for newer := newestEdition() - 1; newer >= edition; newer-- {
		backward[newer](template)
	}
}
