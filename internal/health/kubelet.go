package health

import (
	"regexp"
	"strings"
)

// kubeletPasses matches the messages of a kubelet that waits for its caches, the API server, or the
// container runtime. None of them quotes a Secret.
var kubeletPasses = regexp.MustCompile(`^(?:failed to sync (?:secret|configmap) cache: timed out waiting for the condition` +
	`|object "[a-z0-9-]+"/"[a-z0-9.-]+" not registered` +
	`|services have not yet been read at least once, cannot construct envvars` +
	`|(?:failed to fetch (?:secret|configmap): )?the server is currently unable to handle the request` +
	`(?: \(get (?:secrets|configmaps) [a-z0-9.-]+\))?` +
	`|context deadline exceeded)$`)

// safeOfKubelet matches the messages of the kubelet that quote only the Pod template and the image.
var safeOfKubelet = regexp.MustCompile(`^(?:(?:secret|configmap) "[a-z0-9.-]+" not found` +
	`|(?:couldn't find key|references non-existent (?:secret|config) key:?) [-._a-zA-Z0-9]+` +
	`(?: in (?:Secret|ConfigMap) [a-z0-9./-]+)?` +
	`|container has runAsNonRoot and image will run as root` +
	`|container has runAsNonRoot and image has non-numeric user \([-_a-z0-9]+\), cannot verify user is non-root)$`)

// runsAsRoot matches the messages of the kubelet about an image whose user is root or unknown.
var runsAsRoot = regexp.MustCompile(`^container has runAsNonRoot and image (?:will run as root|has non-numeric user)`)

const runAsUserRemedy = ". Set spec.securityContext.runAsUser, for example to 101, or use an image whose USER is a number other than 0"

// Missing is an object, or a key of an object, that the kubelet did not find for an environment
// variable.
type Missing struct {
	// Kind is "secret" or "configmap", and Name that of the object in the namespace of the Pod.
	Kind, Name string
	// Key is the missing key, or "" if the object itself is missing.
	Key string
}

var (
	// missingObject and missingKey match messages of the kubelet (pkg/kubelet/kubelet_pods.go).
	missingObject = regexp.MustCompile(`(secret|configmap) "([a-z0-9.-]+)" not found`)
	missingKey    = regexp.MustCompile(`couldn't find key ([-._a-zA-Z0-9]+) in (Secret|ConfigMap) [a-z0-9-]+/([a-z0-9.-]+)`)
)

// MissingReference returns the object or key that a message of the kubelet reports as missing. It
// is false for any other message.
func MissingReference(message string) (Missing, bool) {
	if found := missingObject.FindStringSubmatch(message); found != nil {
		return Missing{Kind: found[1], Name: found[2]}, true
	}
	if found := missingKey.FindStringSubmatch(message); found != nil {
		return Missing{Kind: strings.ToLower(found[2]), Name: found[3], Key: found[1]}, true
	}
	return Missing{}, false
}
