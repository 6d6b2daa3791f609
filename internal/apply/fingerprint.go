package apply

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"reflect"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// seed makes fingerprints unpredictable, so that nobody can make two contents of one fingerprint. They mean nothing to another process.
var seed = maphash.MakeSeed()

// unreadable is the fingerprint of what cannot be encoded. It is not equal to itself: what has it is looked at.
const unreadable = 0

// revisionAnnotation is written by the Deployment's controller.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// Stamp leaves the fingerprint of a whole child in its selfLink, which the API server keeps empty. It is for transforms of the
// cache: afterwards all that identifies nothing can be taken away, and a reconcile still sees whether the child changed since it was
// looked at. A child that has its stamp already is left as it is.
func Stamp(child client.Object) {
	if child.GetSelfLink() == "" {
		child.SetSelfLink(strconv.FormatUint(fingerprint(child), base))
	}
}

// base is that of the number in a stamp.
const base = 36

// stampOf returns the fingerprint of a child as the cache has it, whole or stamped.
func stampOf(cached client.Object) uint64 {
	stamp := cached.GetSelfLink()
	if stamp == "" {
		return fingerprint(cached)
	}
	found, err := strconv.ParseUint(stamp, base, 64)
	if err != nil {
		return unreadable
	}
	return found
}

// fingerprint stands for what is declared of a child or stored of it, but for what changes without anybody changing the child. It
// takes time in proportion to the size.
func fingerprint(child client.Object) uint64 {
	raw, err := encode(content(child))
	if err != nil {
		return unreadable
	}
	return maphash.Bytes(seed, raw)
}

// encode returns a form that is equal for what is equal. That of protocol buffers is the cheapest; kinds of other groups lack it.
func encode(object client.Object) ([]byte, error) {
	if encoder, ok := object.(interface{ Marshal() ([]byte, error) }); ok {
		return encoder.Marshal()
	}
	return json.Marshal(object)
}

// content returns a copy of an object, to be read only, without its status, without what the API server and controllers write to
// it by themselves, and without data that nobody can change: that of an immutable ConfigMap, and of a ControllerRevision.
func content(object client.Object) client.Object {
	value := reflect.New(reflect.TypeOf(object).Elem())
	value.Elem().Set(reflect.ValueOf(object).Elem())
	if status := value.Elem().FieldByName("Status"); status.IsValid() {
		status.SetZero()
	}
	out := value.Interface().(client.Object)
	out.SetManagedFields(nil)
	out.SetResourceVersion("")
	out.SetGeneration(0)
	out.SetSelfLink("")
	if _, found := out.GetAnnotations()[revisionAnnotation]; found {
		annotations := maps.Clone(out.GetAnnotations())
		delete(annotations, revisionAnnotation)
		out.SetAnnotations(annotations)
	}
	switch out := out.(type) {
	case *corev1.ConfigMap:
		if ptr.Deref(out.Immutable, false) {
			out.Data, out.BinaryData = nil, nil
		}
	case *appsv1.ControllerRevision:
		out.Data = runtime.RawExtension{}
	}
	return out
}
