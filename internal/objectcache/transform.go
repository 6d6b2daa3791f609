package objectcache

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/apply"
)

// The functions slim* remove the fields that no reader uses from an object before it enters the
// cache. Any client can create objects with our labels, so the cost of each function is at most
// proportional to the size of the object, the result is bounded, and no function interprets the
// content of an object. The functions return other types unchanged, because the cache also passes
// tombstones.

const (
	// maxText is the maximum length of a container message that a kubelet writes, in bytes.
	maxText = 4096
	// maxConditions and maxContainers exceed the numbers in the operator's own Pods, and bound
	// foreign Pods.
	maxConditions = 16
	maxContainers = 32
	// maxName and maxUID bound the fields of an owner reference.
	maxName = 253
	maxUID  = 64
	// maxNumberText is enough for two numbers with their names, or a hash.
	maxNumberText = 64
	// maxPorts is the maximum number of ports of one object. An instance has 16 plain ports, 16
	// ports with a certificate, and one for probes. During a rollout it can have the ports of two
	// declarations.
	maxPorts = 66
)

// numbersOf returns the annotations that the operator reads, or nil if there are none.
func numbersOf(annotations map[string]string) map[string]string {
	var out map[string]string
	for _, key := range []string{
		wellknown.AnnotationReplicas, wellknown.AnnotationContent, wellknown.AnnotationRevision, wellknown.AnnotationChange,
	} {
		if value, found := annotations[key]; found && len(value) <= maxNumberText {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

// slimChild reduces the metadata of a child to its identity and a fingerprint of the whole child. A
// reconcile detects a changed child by the fingerprint, so call slimChild before removing other
// fields. An object that no NginxOperator controls is not a child and gets no fingerprint.
func slimChild(child client.Object, meta *metav1.ObjectMeta) {
	owners := controllerOf(meta)
	if isOurs(owners) {
		apply.Stamp(child)
	}
	stamp := child.GetSelfLink()
	identify(meta, owners)
	child.SetSelfLink(stamp)
}

// identify reduces the metadata to the fields that identify the object.
func identify(meta *metav1.ObjectMeta, owners []metav1.OwnerReference) {
	*meta = metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion, Generation: meta.Generation,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp, OwnerReferences: owners,
	}
}

// controllerOf returns the owner reference of the controller of an object. It ignores a reference
// with a field that is longer than in any valid reference.
func controllerOf(meta *metav1.ObjectMeta) []metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(meta)
	if owner == nil || max(len(owner.APIVersion), len(owner.Kind), len(owner.Name)) > maxName || len(owner.UID) > maxUID {
		return nil
	}
	out := metav1.OwnerReference{
		APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: isController,
	}
	return []metav1.OwnerReference{out}
}

var isController = ptr.To(true)

// isOurs reports whether the controller is an NginxOperator, of any version.
func isOurs(owners []metav1.OwnerReference) bool {
	if len(owners) == 0 {
		return false
	}
	version, err := schema.ParseGroupVersion(owners[0].APIVersion)
	return err == nil && version.Group == v1alpha2.GroupVersion.Group && owners[0].Kind == "NginxOperator"
}

// cut truncates strings, and releases the memory of the rest.
func cut(texts ...*string) { cutTo(maxText, texts...) }

func cutTo(limit int, texts ...*string) {
	for _, text := range texts {
		if len(*text) > limit {
			*text = strings.Clone(strings.ToValidUTF8((*text)[:limit], ""))
		}
	}
}
