package operatormanager

import (
	"fmt"
	"reflect"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/bounds"
)

// packed is an object in the store of an informer. It has the object as bytes, because most fields of
// Go's structures of the API types are empty, and the garbage collector visits them all. Everything
// is one string, because it visits each string too.
type packed struct {
	// text has the namespace, a slash, the index value (packing.index), the name, the resourceVersion,
	// and the encoded object without these.
	text string
	// afterNamespace, afterIndex, afterName, and afterVersion are the ends of these parts.
	afterNamespace, afterIndex, afterName, afterVersion uint16
}

// newPacked returns the packed form of an object with this encoding.
func newPacked(object metav1.Object, index string, raw []byte) *packed {
	out := &packed{text: object.GetNamespace() + "/" + index + object.GetName() + object.GetResourceVersion() + string(raw)}
	end := func(length int) uint16 { return uint16(length) } //nolint:gosec // names have at most 253 bytes, and an index value 256
	out.afterNamespace = end(len(object.GetNamespace()))
	out.afterIndex = out.afterNamespace + end(len("/")+len(index))
	out.afterName = out.afterIndex + end(len(object.GetName()))
	out.afterVersion = out.afterName + end(len(object.GetResourceVersion()))
	return out
}

// size returns the number of bytes of the object, and of its key in the store.
func (p *packed) size() int {
	return len(p.text) + int(p.afterNamespace) + len("/") + int(p.afterName-p.afterIndex)
}

// GetObjectKind implements runtime.Object, which the items of a list have to be.
func (p *packed) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. A packed object never changes.
func (p *packed) DeepCopyObject() runtime.Object { return p }

// GetObjectMeta implements metav1.ObjectMetaAccessor. It has what an informer reads.
func (p *packed) GetObjectMeta() metav1.Object {
	short := strings.Clone(p.text[:p.afterVersion]) // an index keeps a namespace longer than the object
	return &metav1.ObjectMeta{
		Namespace: short[:p.afterNamespace], Name: short[p.afterIndex:p.afterName], ResourceVersion: short[p.afterName:],
	}
}

// instance returns the value of the InstanceIndex, or "" if there is none.
func (p *packed) instance() string {
	if p.index() == "" {
		return ""
	}
	return p.text[:p.afterIndex]
}

// index returns the index value.
func (p *packed) index() string { return p.text[int(p.afterNamespace)+len("/") : p.afterIndex] }

// raw returns a copy of the encoded object.
func (p *packed) raw() ([]byte, error) { return inflate(p.text[p.afterVersion:]) }

// message is an object with generated functions for protocol buffers.
type message interface {
	client.Object
	Marshal() ([]byte, error)
	Unmarshal(raw []byte) error
}

// encode returns the packed form of an object: a protocol buffer, or CBOR if the kind does not support
// protocol buffers.
func (p packing) encode(object client.Object, index string) (*packed, error) {
	raw, err := encoded(object)
	if err != nil {
		return nil, fmt.Errorf("failed to encode %T %s/%s: %w", object, object.GetNamespace(), object.GetName(), err)
	}
	out := newPacked(object, index, raw)
	if out.size() > p.maxSize && len(raw) <= maxDeflated {
		out = newPacked(object, index, deflate(raw))
	}
	return out, nil
}

// encoded returns the encoding of an object without the fields that newPacked adds.
func encoded(object client.Object) ([]byte, error) {
	namespace, name, version := object.GetNamespace(), object.GetName(), object.GetResourceVersion()
	rename := func(namespace, name, version string) {
		object.SetNamespace(namespace)
		object.SetName(name)
		object.SetResourceVersion(version)
	}
	rename("", "", "")
	defer rename(namespace, name, version)
	if builtIn, ok := object.(message); ok {
		return builtIn.Marshal()
	}
	return cbor.Marshal(object)
}

// packing converts objects of a kind to the packed form and back.
type packing struct {
	// kind is the Go structure of the kind.
	kind reflect.Type
	// index returns the index value of an object: the name of its instance, or its references. It is
	// nil if the kind is not indexed.
	index func(metav1.Object) string
	// maxSize is the maximum size of the packed form in bytes. Of a larger object, it is a part.
	maxSize int
	recent
}

func newPacking(kind client.Object, known recent) packing {
	out := packing{reflect.TypeOf(kind).Elem(), instanceOf(kind), maxChild, known}
	if _, ok := kind.(*v1alpha2.NginxOperator); ok {
		out.maxSize = maxInstance
	}
	return out
}

// recent has the most recently used objects of all kinds by packed form: an event has several
// handlers, and starts a reconcile that reads the object.
type recent struct{ objects *lru.Cache }

// recentObjects is the number of recently used objects. They take about 0.5 MiB.
const recentObjects = 256

func newRecent() recent { return recent{lru.New(recentObjects)} }

// add adds an object. One that is stored compressed is not added: it takes so much more than its
// packed form that 256 of them would be an attack of their own.
func (r recent) add(stored *packed, object client.Object) {
	if !isDeflated(stored.text[stored.afterVersion:]) {
		r.objects.Add(stored, object)
	}
}

// clear removes all objects.
func (r recent) clear() { r.objects.Clear() }

// pack returns the packed form of an object, and anything else unchanged, for example a tombstone or
// what is already packed. It does not retain the object, because its strings can be parts of much
// longer ones.
func (p packing) pack(in any) (any, error) {
	object, ok := in.(client.Object)
	if !ok {
		return in, nil
	}
	index := ""
	if p.index != nil {
		index = p.index(object)
	}
	stored, err := p.encode(object, index)
	if err != nil {
		return nil, err
	}
	instance, isInstance := in.(*v1alpha2.NginxOperator)
	if !isInstance {
		if stored.size() <= p.maxSize {
			return stored, nil
		}
		return p.encode(partOf(object, stored), index)
	}
	if stored.size() > p.maxSize {
		instance = partOfInstance(instance)
		if stored, err = p.encode(instance, index); err != nil {
			return nil, err
		}
	}

	// A text that the API server accepts may not be readable, for example of a time in the year -1.
	known, err := p.decode(stored)
	if err == nil {
		p.add(stored, known)
		return stored, nil
	}
	instance.Spec, instance.Status = v1alpha2.NginxOperatorSpec{}, v1alpha2.NginxOperatorStatus{}
	bounds.MarkUnreadable(instance, err.Error())
	return p.encode(instance, index)
}

// newObject returns an empty object of the kind.
func (p packing) newObject() client.Object { return reflect.New(p.kind).Interface().(client.Object) }

// decode reverses encode.
func (p packing) decode(stored *packed) (client.Object, error) {
	out := p.newObject()
	raw, err := stored.raw()
	if err != nil {
		return out, fmt.Errorf("failed to inflate %T: %w", out, err)
	}
	if builtIn, ok := out.(message); ok {
		err = builtIn.Unmarshal(raw)
	} else {
		err = cbor.Unmarshal(raw, out)
	}
	// The names are parts of one string: they become keys of maps, in which the garbage collector
	// visits each string.
	identity := stored.GetObjectMeta()
	out.SetNamespace(identity.GetNamespace())
	out.SetName(identity.GetName())
	out.SetResourceVersion(identity.GetResourceVersion())
	return out, err
}

// unpack returns the object of a packed form, and anything else unchanged.
func (p packing) unpack(in any) any {
	switch in := in.(type) {
	case *packed:
		if known, found := p.objects.Get(in); found {
			return known
		}
		out, err := p.decode(in)
		utilruntime.Must(err) // the same type has encoded it
		p.add(in, out)
		return out
	case toolscache.DeletedFinalStateUnknown:
		in.Obj = p.unpack(in.Obj)
		return in
	}
	return in
}

func (p packing) unpackAll(in []any) []any {
	out := make([]any, len(in))
	for i := range in {
		out[i] = p.unpack(in[i])
	}
	return out
}

// indexers returns index functions of packed objects. The packed form has the namespace.
func (p packing) indexers(of toolscache.Indexers) toolscache.Indexers {
	out := toolscache.Indexers{}
	for name, values := range of {
		if name == toolscache.NamespaceIndex {
			// Each garbage collection visits every object of an index, and only bridges are listed by
			// namespace.
			if p.kind == reflect.TypeFor[discoveryv1.EndpointSlice]() {
				out[name] = values
			}
			continue
		}
		out[name] = func(in any) ([]string, error) { return values(p.unpack(in)) }
	}
	return out
}
