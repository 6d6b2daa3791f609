package operatormanager

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/features"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/example/nginx-operator/internal/access"
	"github.com/example/nginx-operator/internal/cached"
)

// packedInformer stores objects of a kind in the packed form. Its readers, handlers, and indexes get
// the objects themselves, which they share.
type packedInformer struct {
	toolscache.SharedIndexInformer
	packing
	// source lists and watches the objects. SetTransform completes it.
	source *sourceOfKind
	// silent keeps the objects of the first list from the handlers (StartsSilently).
	silent bool
}

// sourceOfKind is the source of an informer, which knows its namespace only after its creation.
type sourceOfKind struct {
	toolscache.ListerWatcherWithContext
	access *access.Namespaces
	// ended is called after the end of the informer.
	ended func()
}

// newPackedInformer creates an informer of a kind. It has the InstanceIndex if the kind is indexed, or
// the index of references.
func newPackedInformer(
	source toolscache.ListerWatcher, of packing, resync time.Duration, indexers toolscache.Indexers, permissions *access.Namespaces,
) packedInformer {
	kind := of.newObject()
	indexers = of.indexers(indexers)
	switch {
	case hasReferences(kind):
		indexers[referenceIndex] = bucketsOfReferences
	case of.index != nil:
		indexers[fieldPrefix+cached.InstanceIndex] = bucketsOf
	}
	later := &sourceOfKind{toolscache.ToListerWatcherWithContext(source), permissions, func() {}}
	complete := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return later.ListWithContext(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return later.WatchWithContext(ctx, options)
		},
	}
	informer := toolscache.NewSharedIndexInformer(toolscache.ToListWatcherWithWatchListSemantics(complete, source), kind, resync, indexers)
	return packedInformer{informer, of, later, false}
}

// SetTransform implements toolscache.SharedInformer.
func (p packedInformer) SetTransform(transform toolscache.TransformFunc) error {
	asked := &inquiry{}
	if _, err := transform(asked); err != nil {
		return err
	}
	pack := func(in any) (any, error) {
		out, err := transform(in)
		if err != nil {
			return nil, err
		}
		return p.pack(out)
	}
	packs := &lister{inner: p.source.ListerWatcherWithContext, kind: p.kind, pack: pack}
	inner := &toolscache.ListWatch{ListWithContextFunc: packs.list, WatchFuncWithContext: packs.inner.WatchWithContext}
	p.source.ListerWatcherWithContext, p.source.ended = p.source.access.Add(inner, asked.namespace, p.kind.Name(), p.isSettled)
	return p.SharedIndexInformer.SetTransform(pack)
}

// isSettled reports whether the store has the last list, which has a resource version unless it was
// denied. The store reports it only if it receives each list as a whole.
func (p packedInformer) isSettled() bool {
	return p.SharedIndexInformer.GetIndexer().LastStoreSyncResourceVersion() != "" || !features.FeatureGates().Enabled(features.AtomicFIFO)
}

// RunWithContext implements toolscache.SharedInformer.
func (p packedInformer) RunWithContext(ctx context.Context) {
	defer func() { p.source.ended() }()
	p.SharedIndexInformer.RunWithContext(ctx)
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
	if hasReferences(p.newObject()) && strings.HasPrefix(name, fieldPrefix) {
		items, err := p.referrers(name, value)
		return p.unpackAll(items), err
	}
	if name != fieldPrefix+cached.InstanceIndex {
		items, err := p.Indexer.ByIndex(name, value)
		return p.unpackAll(items), err
	}
	items, err := p.Indexer.ByIndex(name, bucketOf(value))
	return p.unpackAll(slices.DeleteFunc(items, func(item any) bool { return item.(*packed).instance() != value })), err
}
