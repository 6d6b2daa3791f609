package operatormanager

import (
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// packed is an object in the store of an informer. It has the object as a protocol buffer, because
// most fields of Go's structures of the API types are empty, and the garbage collector visits them
// all.
type packed struct {
	namespace, name, version string
	raw                      []byte
}

// GetObjectMeta implements metav1.ObjectMetaAccessor. It has what an informer reads.
func (p *packed) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.namespace, Name: p.name, ResourceVersion: p.version}
}

// message is an object with generated functions for protocol buffers.
type message interface {
	client.Object
	Marshal() ([]byte, error)
	Unmarshal(raw []byte) error
}

// packedInformer stores objects of a kind in the packed form. Its readers, handlers, and indexes get
// the objects themselves, which they share.
type packedInformer struct {
	toolscache.SharedIndexInformer
	packing
}

// packing converts objects of a kind to the packed form and back.
type packing struct {
	// kind is the Go structure of the kind.
	kind reflect.Type
	// recent has the most recently used objects by packed form: an event has several handlers, and
	// starts a reconcile that reads the object.
	recent *lru.Cache
}

const (
	// recentObjects is the number of recently used objects of all kinds. They take about 2 MiB.
	recentObjects = 1024
	// maxRecent is the maximum size in bytes of the packed form of a recently used object. A foreign
	// object can be much larger than the operator's.
	maxRecent = 4096
)

// newPackedInformer creates an informer of a kind that supports protocol buffers.
func newPackedInformer(
	source toolscache.ListerWatcher, kind message, resync time.Duration, indexers toolscache.Indexers, recent *lru.Cache,
) packedInformer {
	of := packing{reflect.TypeOf(kind).Elem(), recent}
	return packedInformer{toolscache.NewSharedIndexInformer(source, kind, resync, of.indexers(indexers)), of}
}

// SetTransform implements toolscache.SharedInformer.
func (p packedInformer) SetTransform(transform toolscache.TransformFunc) error {
	return p.SharedIndexInformer.SetTransform(func(in any) (any, error) {
		out, err := transform(in)
		if err != nil {
			return nil, err
		}
		return p.pack(out)
	})
}

// pack returns the packed form of an object, and anything else unchanged, for example a tombstone or
// what is already packed.
func (p packing) pack(in any) (any, error) {
	object, ok := in.(message)
	if !ok {
		return in, nil
	}
	raw, err := object.Marshal()
	if err != nil {
		return nil, fmt.Errorf("failed to encode %T %s/%s: %w", in, object.GetNamespace(), object.GetName(), err)
	}
	out := &packed{namespace: object.GetNamespace(), name: object.GetName(), version: object.GetResourceVersion(), raw: raw}
	p.remember(out, object)
	return out, nil
}

func (p packing) remember(stored *packed, object message) {
	if len(stored.raw) <= maxRecent {
		p.recent.Add(stored, object)
	}
}

// unpack returns the object of a packed form, and anything else unchanged.
func (p packing) unpack(in any) any {
	switch in := in.(type) {
	case *packed:
		if known, found := p.recent.Get(in); found {
			return known
		}
		out := reflect.New(p.kind).Interface().(message)
		utilruntime.Must(out.Unmarshal(in.raw)) // the same type has encoded it
		p.remember(in, out)
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

// indexers returns index functions of packed objects.
func (p packing) indexers(of toolscache.Indexers) toolscache.Indexers {
	out := toolscache.Indexers{}
	for name, values := range of {
		out[name] = func(in any) ([]string, error) { return values(p.unpack(in)) }
	}
	return out
}

// AddEventHandler implements toolscache.SharedInformer.
func (p packedInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return p.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements toolscache.SharedInformer.
func (p packedInformer) AddEventHandlerWithResyncPeriod(
	handler toolscache.ResourceEventHandler, period time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return p.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions implements toolscache.SharedInformer.
func (p packedInformer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return p.SharedIndexInformer.AddEventHandlerWithOptions(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, isInInitialList bool) { handler.OnAdd(p.unpack(object), isInInitialList) },
		UpdateFunc: func(before, now any) { handler.OnUpdate(p.unpack(before), p.unpack(now)) },
		DeleteFunc: func(object any) { handler.OnDelete(p.unpack(object)) },
	}, options)
}

// AddIndexers implements toolscache.SharedIndexInformer.
func (p packedInformer) AddIndexers(indexers toolscache.Indexers) error {
	return p.SharedIndexInformer.AddIndexers(p.indexers(indexers))
}

// GetStore implements toolscache.SharedInformer.
func (p packedInformer) GetStore() toolscache.Store { return p.GetIndexer() }

// GetIndexer implements toolscache.SharedIndexInformer.
func (p packedInformer) GetIndexer() toolscache.Indexer {
	return packedIndexer{p.SharedIndexInformer.GetIndexer(), p.packing}
}

// packedIndexer is the store of a packedInformer for readers.
type packedIndexer struct {
	toolscache.Indexer
	packing
}

// List implements toolscache.Store.
func (p packedIndexer) List() []any { return p.unpackAll(p.Indexer.List()) }

// Get implements toolscache.Store.
func (p packedIndexer) Get(object any) (any, bool, error) {
	item, found, err := p.Indexer.Get(object)
	return p.unpack(item), found, err
}

// GetByKey implements toolscache.Store.
func (p packedIndexer) GetByKey(key string) (any, bool, error) {
	item, found, err := p.Indexer.GetByKey(key)
	return p.unpack(item), found, err
}

// Index implements toolscache.Indexer.
func (p packedIndexer) Index(name string, object any) ([]any, error) {
	items, err := p.Indexer.Index(name, object)
	return p.unpackAll(items), err
}

// ByIndex implements toolscache.Indexer.
func (p packedIndexer) ByIndex(name, value string) ([]any, error) {
	items, err := p.Indexer.ByIndex(name, value)
	return p.unpackAll(items), err
}
