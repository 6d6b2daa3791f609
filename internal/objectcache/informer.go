package objectcache

import (
	"context"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/features"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/pkg/access"
	"github.com/example/nginx-operator/pkg/lists"
)

// NewInformer creates an informer of a cache (cache.Options.NewInformer).
type NewInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// Informers returns the function that creates the informers of the cache, with the InstanceIndex
// and the indexes of references, which are functions of the referenced names. An NginxOperator that
// cannot be decoded fails alone: a typed client decodes a list as a whole, so one stored object
// would block the reconciles of all objects in all namespaces. A missing permission of an informer
// is reported to permissions, which is nil if all namespaces are watched.
func Informers(cfg *rest.Config, references References, permissions *access.Namespaces) (NewInformer, error) {
	lenient, err := newLenientClient(cfg)
	if err != nil {
		return nil, err
	}
	return func(typed toolscache.ListerWatcher, kind runtime.Object, resync time.Duration,
		indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		references.addIndexers(indexers, kind)
		source, setNamespace := typed, func(string) {}
		if _, ok := kind.(*v1alpha2.NginxOperator); ok {
			lister := &oneByOne{source: lenient}
			source = toolscache.ToListWatcherWithWatchListSemantics(lister.listWatch(), lenient)
			setNamespace = func(namespace string) { lister.namespace = namespace }
		}
		later := &sourceOfKind{toolscache.ToListerWatcherWithContext(source), reflect.TypeOf(kind).Elem(), permissions, func() {}}
		shared := toolscache.NewSharedIndexInformer(
			toolscache.ToListWatcherWithWatchListSemantics(later.listWatch(), source), kind, resync, indexers)
		return informer{shared, later, references, setNamespace}
	}, nil
}

// informer lists object by object, and stores at most a part of a large object. SetTransform
// completes it.
type informer struct {
	toolscache.SharedIndexInformer
	source     *sourceOfKind
	references References
	// setNamespace tells the lister its namespace.
	setNamespace func(namespace string)
}

// sourceOfKind is the source of an informer, which knows its namespace only after its creation.
type sourceOfKind struct {
	toolscache.ListerWatcherWithContext
	kind   reflect.Type
	access *access.Namespaces
	// ended is called after the end of the informer.
	ended func()
}

// listWatch returns the source in the form that an informer takes.
func (s *sourceOfKind) listWatch() *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return s.ListWithContext(ctx, options) // of the source at the time of the call
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return s.WatchWithContext(ctx, options)
		},
	}
}

// SetTransform implements toolscache.SharedInformer.
func (i informer) SetTransform(transform toolscache.TransformFunc) error {
	asked := &inquiry{}
	if _, err := transform(asked); err != nil {
		return err
	}
	i.setNamespace(asked.namespace)

	transform = i.references.bounded(transform)
	inner := lists.NewListWatch(i.source.ListerWatcherWithContext, i.source.decode, transform)
	i.source.ListerWatcherWithContext, i.source.ended = i.source.access.Add(inner, asked.namespace, i.source.kind.Name(), i.isSettled)
	return i.SharedIndexInformer.SetTransform(transform)
}

// decode decodes an item of a list.
func (s *sourceOfKind) decode(raw []byte, isJSON bool) (runtime.Object, error) {
	if s.kind == reflect.TypeFor[v1alpha2.NginxOperator]() {
		return codec.ReadAlone(raw), nil
	}
	out := reflect.New(s.kind).Interface().(client.Object)
	if err := lists.Decode(raw, isJSON, out); err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // those of a custom resource
	return out, nil
}

// isSettled reports whether the store has the last list, which has a resource version unless it was
// denied. The store reports it only if it receives each list as a whole.
func (i informer) isSettled() bool {
	return i.GetIndexer().LastStoreSyncResourceVersion() != "" || !features.FeatureGates().Enabled(features.AtomicFIFO)
}

// RunWithContext implements toolscache.SharedInformer.
func (i informer) RunWithContext(ctx context.Context) {
	defer func() { i.source.ended() }()
	i.SharedIndexInformer.RunWithContext(ctx)
}
