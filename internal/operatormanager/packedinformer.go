package operatormanager

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// packedInformer stores objects of a kind in the packed form. Its readers, handlers, and indexes get
// the objects themselves, which they share.
type packedInformer struct {
	toolscache.SharedIndexInformer
	packing
	// silent keeps the objects of the first list from the handlers (StartsSilently).
	silent bool
}

// newPackedInformer creates an informer of a kind. It has the InstanceIndex if the kind is indexed.
func newPackedInformer(
	source toolscache.ListerWatcher, kind client.Object, resync time.Duration, indexers toolscache.Indexers, known recent,
) packedInformer {
	of := newPacking(kind, known)
	indexers = of.indexers(indexers)
	if of.instance != nil {
		indexers[fieldPrefix+InstanceIndex] = bucketsOf
	}
	return packedInformer{toolscache.NewSharedIndexInformer(source, kind, resync, indexers), of, false}
}

// packedInformers returns the function that creates the informers of a cache.
func packedInformers() NewInformer {
	known := newRecent()
	return func(source toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		return newPackedInformer(source, kind.(client.Object), resync, indexers, known)
	}
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

// bucketsOf is the index function of the stored InstanceIndex.
func bucketsOf(in any) ([]string, error) {
	stored, ok := in.(*packed)
	if !ok || stored.instance() == "" {
		return nil, nil
	}
	return []string{bucketOf(stored.instance())}, nil
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
		AddFunc: func(object any, isInInitialList bool) {
			if !p.silent || !isInInitialList {
				handler.OnAdd(p.unpack(object), isInInitialList)
			}
		},
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
	if name != fieldPrefix+InstanceIndex {
		items, err := p.Indexer.ByIndex(name, value)
		return p.unpackAll(items), err
	}
	items, err := p.Indexer.ByIndex(name, bucketOf(value))
	return p.unpackAll(slices.DeleteFunc(items, func(item any) bool { return item.(*packed).instance() != value })), err
}
