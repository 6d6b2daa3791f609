package objectcache

import (
	"context"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
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
// and the indexes of references. An NginxOperator that cannot be decoded fails alone: a typed client
// decodes a list as a whole, so one stored object would block all namespaces. A missing permission
// of an informer is reported to permissions, which is nil if all namespaces are watched.
func Informers(cfg *rest.Config, references References, permissions *access.Namespaces) (NewInformer, error) {
	lenient, err := newLenientClient(cfg)
	if err != nil {
		return nil, err
	}
	return func(
		typed toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		references.addIndexers(indexers, kind)
		i := &informer{kind: reflect.TypeOf(kind).Elem(), references: references, permissions: permissions}
		source := typed
		if i.kind == reflect.TypeFor[v1alpha2.NginxOperator]() {
			source = lenient.listWatch(i)
		}

		i.source = toolscache.ToListerWatcherWithContext(source)
		sourceAtCall := &toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return i.source.ListWithContext(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return i.source.WatchWithContext(ctx, options)
			},
		}

		i.SharedIndexInformer = toolscache.NewSharedIndexInformer(
			toolscache.ToListWatcherWithWatchListSemantics(sourceAtCall, lists.NotStreamed{}), kind, resync, indexers)
		return i
	}, nil
}

// informer lists object by object, and stores at most a part of a large object. SetTransform
// completes it, because the informer learns its namespace only then.
type informer struct {
	toolscache.SharedIndexInformer
	source      toolscache.ListerWatcherWithContext
	kind        reflect.Type
	references  References
	permissions *access.Namespaces
	// namespace is the namespace of the objects, or "" for all namespaces.
	namespace string
}

// SetTransform implements toolscache.SharedInformer.
func (i *informer) SetTransform(transform toolscache.TransformFunc) error {
	asked := &inquiry{}
	if _, err := transform(asked); err != nil {
		return err
	}

	i.namespace = asked.namespace

	transform = i.references.bounded(transform)
	inner := lists.NewListWatch(i.source, i.decode, transform)
	i.source = i.permissions.Add(inner, i.namespace, i.kind.Name(), i.isSettled)
	return i.SharedIndexInformer.SetTransform(transform)
}

func (i *informer) decode(raw []byte, isJSON bool) (runtime.Object, error) {
	if i.kind == reflect.TypeFor[v1alpha2.NginxOperator]() {
		return codec.ReadAlone(raw), nil
	}

	item := reflect.New(i.kind).Interface().(client.Object)
	if err := lists.Decode(raw, isJSON, item); err != nil {
		return nil, err
	}

	item.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // those of a custom resource
	return item, nil
}

// isSettled reports whether the store has the last list, which has a resource version unless it was
// denied. The store reports it only if it receives each list as a whole.
func (i *informer) isSettled() bool {
	return i.GetIndexer().LastStoreSyncResourceVersion() != "" || !features.FeatureGates().Enabled(features.AtomicFIFO)
}

// lenient is an NginxOperator whose decoding never fails (codec.ReadAlone).
type lenient struct{ v1alpha2.NginxOperator }

// UnmarshalJSON implements json.Unmarshaler.
func (l *lenient) UnmarshalJSON(raw []byte) error {
	l.NginxOperator = *codec.ReadAlone(raw)
	return nil
}

// lenientClient decodes NginxOperators into lenient, and lists item by item.
type lenientClient struct {
	*rest.RESTClient
	parameters runtime.ParameterCodec
}

func newLenientClient(cfg *rest.Config) (*lenientClient, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(v1alpha2.GroupVersion.WithKind("NginxOperator"), &lenient{})
	scheme.AddKnownTypeWithName(v1alpha2.GroupVersion.WithKind("NginxOperatorList"), &v1alpha2.NginxOperatorList{})
	metav1.AddToGroupVersion(scheme, v1alpha2.GroupVersion)

	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion = "/apis", &v1alpha2.GroupVersion
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	cfg.Wrap(lists.Wrap)
	client, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("failed to create the client that decodes NginxOperators one by one: %w", err)
	}

	return &lenientClient{client, runtime.NewParameterCodec(scheme)}, nil
}

func (c *lenientClient) listWatch(i *informer) *toolscache.ListWatch {
	request := func(options *metav1.ListOptions) *rest.Request {
		return c.Get().NamespaceIfScoped(i.namespace, i.namespace != "").Resource("nginxoperators").
			VersionedParams(options, c.parameters)
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha2.NginxOperatorList{}
			return list, request(&options).Do(ctx).Into(list)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch, options.AllowWatchBookmarks = true, true
			events, err := request(&options).Watch(ctx)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
				// The object of an error is a Status.
				if object, ok := event.Object.(*lenient); ok {
					event.Object = &object.NginxOperator
				}
				return event, true
			}), nil
		},
	}
}
