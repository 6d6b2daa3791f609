package operatormanager

import (
	"fmt"
	"reflect"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// text has the namespace, a slash, the name of the instance (instanceOf), the name, the
	// resourceVersion, and the encoded object.
	text string
	// afterNamespace, afterInstance, afterName, and afterVersion are the ends of these parts.
	afterNamespace, afterInstance, afterName, afterVersion int
}

// newPacked returns the packed form of an object with this encoding.
func newPacked(object metav1.Object, instance string, raw []byte) *packed {
	out := &packed{afterNamespace: len(object.GetNamespace())}
	out.afterInstance = out.afterNamespace + len("/") + len(instance)
	out.afterName = out.afterInstance + len(object.GetName())
	out.afterVersion = out.afterName + len(object.GetResourceVersion())
	out.text = object.GetNamespace() + "/" + instance + object.GetName() + object.GetResourceVersion() + string(raw)
	return out
}

// GetObjectMeta implements metav1.ObjectMetaAccessor. It has what an informer reads.
func (p *packed) GetObjectMeta() metav1.Object {
	short := strings.Clone(p.text[:p.afterVersion]) // an index keeps a namespace longer than the object
	return &metav1.ObjectMeta{
		Namespace: short[:p.afterNamespace], Name: short[p.afterInstance:p.afterName], ResourceVersion: short[p.afterName:],
	}
}

// instance returns the value of the InstanceIndex, or "" if there is none.
func (p *packed) instance() string {
	if p.afterInstance == p.afterNamespace+len("/") {
		return ""
	}
	return p.text[:p.afterInstance]
}

// raw returns a copy of the encoded object.
func (p *packed) raw() []byte { return []byte(p.text[p.afterVersion:]) }

// message is an object with generated functions for protocol buffers.
type message interface {
	client.Object
	Marshal() ([]byte, error)
	Unmarshal(raw []byte) error
}

// encode returns the packed form of an object: a protocol buffer, or CBOR if the kind does not support
// protocol buffers.
func (p packing) encode(object client.Object) (*packed, error) {
	var raw []byte
	var err error
	if builtIn, ok := object.(message); ok {
		raw, err = builtIn.Marshal()
	} else {
		raw, err = cbor.Marshal(object)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to encode %T %s/%s: %w", object, object.GetNamespace(), object.GetName(), err)
	}
	instance := ""
	if p.instance != nil {
		instance = p.instance(object)
	}
	return newPacked(object, instance, raw), nil
}

// packing converts objects of a kind to the packed form and back.
type packing struct {
	// kind is the Go structure of the kind.
	kind reflect.Type
	// instance returns the name of an object's instance. It is nil if the kind is not indexed.
	instance func(metav1.Object) string
	recent
}

func newPacking(kind client.Object, known recent) packing {
	return packing{reflect.TypeOf(kind).Elem(), instanceOf(kind), known}
}

// recent has the most recently used objects of all kinds by packed form: an event has several
// handlers, and starts a reconcile that reads the object.
type recent struct{ small, large *lru.Cache }

const (
	// maxSmall is the maximum size in bytes of the packed form of a small object. A user's object can
	// be much larger than the operator's.
	maxSmall = 4096
	// smallObjects and largeObjects are the numbers of recently used objects. Small ones take about
	// 0.5 MiB. An event of a large object has its old and its new form.
	smallObjects = 256
	largeObjects = 2
)

func newRecent() recent { return recent{lru.New(smallObjects), lru.New(largeObjects)} }

// like returns the cache of objects with the size of this one.
func (r recent) like(stored *packed) *lru.Cache {
	if len(stored.text) <= maxSmall {
		return r.small
	}
	return r.large
}

// clear removes all objects.
func (r recent) clear() {
	r.small.Clear()
	r.large.Clear()
}

// pack returns the packed form of an object, and anything else unchanged, for example a tombstone or
// what is already packed. It does not retain the object, because its strings can be parts of much
// longer ones.
func (p packing) pack(in any) (any, error) {
	object, ok := in.(client.Object)
	if !ok {
		return in, nil
	}
	stored, err := p.encode(object)
	instance, ok := in.(*v1alpha2.NginxOperator)
	if err != nil || !ok {
		return stored, err
	}
	// A value can have no text that is readable again, for example a time in the year -1.
	known, err := p.decode(stored)
	if err == nil {
		p.like(stored).Add(stored, known)
		return stored, nil
	}
	instance.Spec, instance.Status = v1alpha2.NginxOperatorSpec{}, v1alpha2.NginxOperatorStatus{}
	bounds.MarkUnreadable(instance, err.Error())
	return p.encode(instance)
}

// decode reverses encode.
func (p packing) decode(stored *packed) (client.Object, error) {
	out := reflect.New(p.kind).Interface().(client.Object)
	var err error
	if builtIn, ok := out.(message); ok {
		err = builtIn.Unmarshal(stored.raw())
	} else {
		err = cbor.Unmarshal(stored.raw(), out)
	}
	// The names become keys of maps, in which the garbage collector visits each string.
	both := out.GetNamespace() + out.GetName()
	out.SetName(both[len(out.GetNamespace()):])
	out.SetNamespace(both[:len(out.GetNamespace())])
	return out, err
}

// unpack returns the object of a packed form, and anything else unchanged.
func (p packing) unpack(in any) any {
	switch in := in.(type) {
	case *packed:
		if known, found := p.like(in).Get(in); found {
			return known
		}
		out, err := p.decode(in)
		utilruntime.Must(err) // the same type has encoded it
		p.like(in).Add(in, out)
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
