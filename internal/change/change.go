// Package change identifies what reaches the Pods of an instance.
package change

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
)

// ID identifies the Pods of a declaration by two hashes: of the user's part, which is "" for an
// unknown spec, and of the Pod template with the content that it mounts. Pods of the same user's
// part and different templates differ by the release. The zero value is of unknown Pods.
type ID string

// NewID returns the ID of two hashes. The user's can be "".
func NewID(user, pods string) ID { return ID(user + "-" + pods) }

// User returns the hash of the user's part, or "" if it is not known.
func (id ID) User() string { user, _, _ := strings.Cut(string(id), "-"); return user }

// Pods returns the hash of the Pod template, or "" if it is not known.
func (id ID) Pods() string { _, pods, _ := strings.Cut(string(id), "-"); return pods }

// SamePods reports whether two IDs are of equal Pods.
func (id ID) SamePods(other ID) bool { return id.Pods() != "" && id.Pods() == other.Pods() }

// SameUser reports whether Pods differ at most by the release.
func (id ID) SameUser(other ID) bool {
	return id.SamePods(other) || id.User() != "" && id.User() == other.User()
}

// Of returns the ID of a declaration with this Pod template.
func Of(object *v1alpha2.NginxOperator, in operand.Inputs, template *corev1.PodTemplateSpec) (ID, error) {
	raw, err := json.Marshal(struct {
		Spec                    v1alpha2.NginxOperatorSpec
		Servers, Content, Files string
		// Directories is omitted without masks, so that the hash stays that of earlier releases.
		Directories []string `json:",omitempty"`
	}{UserPart(&object.Spec), in.ServersHash, hashOf(in.Content), hashOf(in.Files), directoryHashes(in.Directories)})
	if err != nil {
		return "", fmt.Errorf("failed to encode spec: %w", err)
	}

	pods, err := PodsOf(template)
	return NewID(operand.ShortHash(string(raw)), pods), err
}

func directoryHashes(directories []operand.Directory) (hashes []string) {
	for _, directory := range directories {
		hashes = append(hashes, directory.Hash)
	}
	return hashes
}

func hashOf(content *operand.Content) string {
	if content == nil {
		return ""
	}
	return content.Hash
}

// PodsOf returns the hash of a Pod template, independent of the names of nginx's ports, which
// depend on the running Pods, of the hashes of Secrets, and of the suffixes of ConfigMaps.
func PodsOf(template *corev1.PodTemplateSpec) (string, error) {
	stable := template.DeepCopy()
	numbers := operand.ContainerPortsOf(stable.Annotations, &stable.Spec)
	for i := range stable.Spec.Containers {
		if stable.Spec.Containers[i].Name != wellknown.OperandContainer {
			continue
		}
		ports := stable.Spec.Containers[i].Ports
		for j := range ports[:min(len(ports), len(numbers))] {
			if ports[j].Name != operand.HealthPort {
				ports[j].Name = fmt.Sprintf("p-%d", numbers[j].Number)
			}
		}
	}

	for _, key := range []string{wellknown.AnnotationServicePorts, wellknown.AnnotationCertificates, wellknown.AnnotationFiles} {
		delete(stable.Annotations, key)
	}

	operand.WithoutSuffix(&stable.Spec)

	raw, err := json.Marshal(stable)
	if err != nil {
		return "", fmt.Errorf("failed to encode Pod template: %w", err)
	}

	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:podsBytes]), nil
}

// podsBytes is so long that no tenant can find another template with the same hash.
const podsBytes = 10

// UserPart returns the part of a spec that reaches the Pods. TestUserPart compares it with the
// fields that change them.
func UserPart(spec *v1alpha2.NginxOperatorSpec) v1alpha2.NginxOperatorSpec {
	out := *spec.DeepCopy()
	out.Replicas, out.Autoscaling, out.Rollout, out.Paused = nil, nil, nil, false
	out.Service, out.NetworkPolicy, out.Expose = nil, nil, nil
	for i := range out.Ports {
		port := &out.Ports[i]
		port.Name, port.NodePort, port.Protocol = "", nil, ""
		if port.AppProtocol != "https" { // nginx serves TLS then
			port.AppProtocol = ""
		}
	}

	for i := range out.TLS {
		out.TLS[i].NodePort = nil
	}
	if out.Monitoring != nil {
		out.Monitoring.PodMonitor, out.Monitoring.Alerts = nil, nil
	}

	out.Patches = slices.DeleteFunc(out.Patches, func(patch v1alpha2.Patch) bool { return patch.Target.Kind != "Deployment" })
	return out
}
