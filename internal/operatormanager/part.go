package operatormanager

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/census"
	"github.com/example/nginx-operator/internal/defaults"
)

// The cache has only a part of an object whose packed form is too large: its identity, and what the
// handlers of events read. A reconcile reads such an object from the API server (Whole). So a large
// object costs no more memory than a small one.

const (
	// maxInstance and maxChild are the maximum sizes of an NginxOperator and of a child in the cache,
	// in bytes (packed.size). With indexes, maps, and the census, an NginxOperator takes at most 4 KiB,
	// and a child 2 KiB.
	maxInstance = 3000
	maxChild    = 1720
	// maxKind bounds the API version and the kind of the owner in a part.
	maxKind = 64
)

// annotationPart marks a part. Its value is the hash of a child, or the hashes of the spec and of the
// status of an NginxOperator. It exists only in the memory of this process.
const annotationPart = "internal.operator.example.com/part"

// partSeed is random, so no client can create two contents with the same hash.
var partSeed = maphash.MakeSeed()

// IsPart reports whether an object of the cache is only a part.
func IsPart(object client.Object) bool {
	_, is := object.GetAnnotations()[annotationPart]
	return is
}

// PartsDiffer reports whether one of two versions of a child is a part, and whether the versions
// differ in a field that the cache would have without its bounds.
func PartsDiffer(before, now client.Object) (differ, isPart bool) {
	was, wasPart := before.GetAnnotations()[annotationPart]
	is, isPart := now.GetAnnotations()[annotationPart]
	return wasPart != isPart || was != is, wasPart || isPart
}

// partOf returns the part of a child, whose packed form is given.
func partOf(child client.Object, whole *packed) client.Object {
	out := reflect.New(reflect.TypeOf(child).Elem()).Interface().(client.Object)
	out.SetUID(child.GetUID())
	out.SetNamespace(child.GetNamespace())
	out.SetName(child.GetName())
	out.SetResourceVersion(child.GetResourceVersion())
	out.SetGeneration(child.GetGeneration())
	out.SetCreationTimestamp(child.GetCreationTimestamp())
	out.SetDeletionTimestamp(child.GetDeletionTimestamp())
	out.SetLabels(child.GetLabels())
	out.SetSelfLink(child.GetSelfLink())
	if owners := child.GetOwnerReferences(); len(owners) > 0 && max(len(owners[0].APIVersion), len(owners[0].Kind)) <= maxKind {
		out.SetOwnerReferences(owners)
	}
	out.SetAnnotations(map[string]string{annotationPart: fmt.Sprintf("%x", maphash.String(partSeed, whole.text[whole.afterVersion:]))})
	return out
}

// partOfInstance returns the part of an NginxOperator.
func partOfInstance(object *v1alpha2.NginxOperator) *v1alpha2.NginxOperator {
	out := &v1alpha2.NginxOperator{ObjectMeta: *object.ObjectMeta.DeepCopy()}
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, annotationPart, specHash(object)+" "+StatusHash(object))
	out.GenerateName = ""
	out.Status = census.Known(&object.Status)
	return out
}

// SpecsDiffer reports whether the specs of two versions of an NginxOperator differ. It accepts whole
// objects and parts.
func SpecsDiffer(before, now *v1alpha2.NginxOperator) bool {
	if IsPart(before) || IsPart(now) {
		return specHash(before) != specHash(now)
	}
	return !defaults.SameSpec(&before.Spec, &now.Spec)
}

// StatusesDiffer reports whether the statuses of two versions of an NginxOperator differ. It accepts
// whole objects and parts.
func StatusesDiffer(before, now *v1alpha2.NginxOperator) bool {
	if IsPart(before) || IsPart(now) {
		return StatusHash(before) != StatusHash(now)
	}
	return !equality.Semantic.DeepEqual(before.Status, now.Status)
}

// specHash returns a hash of the spec of an NginxOperator, or of its part.
func specHash(object *v1alpha2.NginxOperator) string {
	if hashes, isPart := object.Annotations[annotationPart]; isPart {
		spec, _, _ := strings.Cut(hashes, " ")
		return spec
	}
	return hashOfJSON(object.Spec)
}

// StatusHash returns a hash of the status of an NginxOperator, or of its part.
func StatusHash(object *v1alpha2.NginxOperator) string {
	if hashes, isPart := object.Annotations[annotationPart]; isPart {
		_, status, _ := strings.Cut(hashes, " ")
		return status
	}
	return hashOfJSON(object.Status)
}

// hashOfJSON returns a hash of a value. Values that have no JSON have the same hash as null.
func hashOfJSON(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		raw = []byte("null")
	}
	return fmt.Sprintf("%x", maphash.Bytes(partSeed, raw))
}
