package operatormanager

import (
	"fmt"
	"hash/maphash"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/census"
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

// partSeed is random, so no client can create two contents with the same hash.
var partSeed = maphash.MakeSeed()

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
	out.SetAnnotations(map[string]string{cached.AnnotationPart: fmt.Sprintf("%x", maphash.String(partSeed, whole.text[whole.afterVersion:]))})
	return out
}

// partOfInstance returns the part of an NginxOperator.
func partOfInstance(object *v1alpha2.NginxOperator) *v1alpha2.NginxOperator {
	out := &v1alpha2.NginxOperator{ObjectMeta: *object.ObjectMeta.DeepCopy()}
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, cached.AnnotationPart, cached.SpecHash(object)+" "+cached.StatusHash(object))
	out.GenerateName = ""
	out.Status = census.Known(&object.Status)
	return out
}
