package apply

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// seed makes fingerprints unpredictable, so no client can create two contents with the same
// fingerprint. Fingerprints of another process have another seed.
var seed = maphash.MakeSeed()

// unreadable is the fingerprint of an object that cannot be encoded. It never counts as equal, so
// such a child is always compared.
const unreadable = 0

// revisionAnnotation is written by the Deployment controller.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// Stamp stores the fingerprint of a whole child in its selfLink, which the API server leaves empty.
// Cache transforms call it before they remove fields, so that a reconcile still detects a changed
// child. It does not change a child that has a stamp.
func Stamp(child client.Object) {
	if child.GetSelfLink() == "" {
		child.SetSelfLink(strconv.FormatUint(fingerprint(child), base))
	}
}

// base is the base of the number in a stamp.
const base = 36

// stampOf returns the fingerprint of a whole child, or of the form in the cache.
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

// fingerprint returns a hash of a declared or stored child. The hash ignores fields that change
// although no client changes the child. The cost is proportional to the size.
func fingerprint(child client.Object) uint64 {
	buffer := encoded.Get().(*[]byte)
	defer encoded.Put(buffer)
	raw, err := encode(content(child), *buffer)
	if err != nil {
		return unreadable
	}
	if cap(raw) <= maxEncoded {
		*buffer = raw
	}
	return maphash.Bytes(seed, raw)
}

// encoded has buffers for encoded objects, which are read once. A buffer for an object larger than
// maxEncoded bytes is not kept.
var encoded = sync.Pool{New: func() any { return new([]byte) }}

const maxEncoded = 64 << 10

// encode returns equal bytes for equal objects, in the buffer if it is large enough. Protocol
// buffers are the cheapest encoding. Kinds of other API groups do not support it.
func encode(object client.Object, buffer []byte) ([]byte, error) {
	encoder, ok := object.(interface {
		Size() int
		MarshalToSizedBuffer(buffer []byte) (int, error)
	})
	if !ok {
		return json.Marshal(object)
	}
	raw := slices.Grow(buffer[:0], encoder.Size())[:encoder.Size()]
	_, err := encoder.MarshalToSizedBuffer(raw)
	return raw, err
}

// content returns a read-only copy of an object. The copy has no status, no metadata that the API
// server and controllers set, and no data of an immutable ConfigMap or of a ControllerRevision.
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
