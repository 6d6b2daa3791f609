package cached

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// AnnotationPart marks a part. Its value is the hash of a child, or the hashes of the spec and of
// the status of an NginxOperator. Its name is random, so that no client can forge a part.
var AnnotationPart = "internal.operator.example.com/part-" + rand.String(20)

// AnyReference is the value of an index of references for a part with so many references that the
// cache lacks them. It can need every object of its namespace.
const AnyReference = "*"

// seed is random, so no client can create two contents with the same hash.
var seed = maphash.MakeSeed()

// IsPart reports whether an object of the cache is only a part.
func IsPart(object client.Object) bool {
	_, is := object.GetAnnotations()[AnnotationPart]
	return is
}

// PartsDiffer reports whether one of two versions of a child is a part, and whether the versions
// differ in a field that the cache would have without its bounds.
func PartsDiffer(before, now client.Object) (differ, isPart bool) {
	was, wasPart := before.GetAnnotations()[AnnotationPart]
	is, isPart := now.GetAnnotations()[AnnotationPart]
	return wasPart != isPart || was != is, wasPart || isPart
}

// SpecsDiffer reports whether the specs of two versions of an NginxOperator differ.
func SpecsDiffer(before, now *v1alpha2.NginxOperator) bool {
	if IsPart(before) || IsPart(now) {
		return SpecHash(before) != SpecHash(now)
	}
	return !defaults.SameSpec(&before.Spec, &now.Spec)
}

// StatusesDiffer reports whether the statuses of two versions of an NginxOperator differ.
func StatusesDiffer(before, now *v1alpha2.NginxOperator) bool {
	if IsPart(before) || IsPart(now) {
		return StatusHash(before) != StatusHash(now)
	}
	return !equality.Semantic.DeepEqual(before.Status, now.Status)
}

// SpecHash returns a hash of the spec of an NginxOperator, or of its part.
func SpecHash(object *v1alpha2.NginxOperator) string {
	if hashes, isPart := object.Annotations[AnnotationPart]; isPart {
		spec, _, _ := strings.Cut(hashes, " ")
		return spec
	}
	return hashOfJSON(object.Spec)
}

// StatusHash returns a hash of the status of an NginxOperator, or of its part.
func StatusHash(object *v1alpha2.NginxOperator) string {
	if hashes, isPart := object.Annotations[AnnotationPart]; isPart {
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
	return fmt.Sprintf("%x", maphash.Bytes(seed, raw))
}
