package reference

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"unique"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/pkg/access"
	"github.com/example/nginx-operator/pkg/lists"
)

// identity is what an informer has of an object. The metadata of one object can have hundreds of
// KiB, and a cluster can have a hundred thousand ConfigMaps and Secrets.
type identity struct{ namespace, name, resourceVersion string }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (i *identity) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: i.namespace, Name: i.name, ResourceVersion: i.resourceVersion}
}

// GetObjectKind implements runtime.Object, which the items of a list have to be.
func (i *identity) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. An identity never changes.
func (i *identity) DeepCopyObject() runtime.Object { return i }

func identify(object any) (any, error) {
	switch object.(type) {
	case *identity, cache.DeletedFinalStateUnknown:
		return object, nil
	}

	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, fmt.Errorf("failed to read the metadata of a %T: %w", object, err)
	}
	return &identity{unique.Make(accessor.GetNamespace()).Value(), accessor.GetName(), accessor.GetResourceVersion()}, nil
}

func newInformer(
	watcher metadata.Interface, resource schema.GroupVersionResource, namespace string, permissions *access.Namespaces,
) cache.SharedIndexInformer {
	objects := watcher.Resource(resource).Namespace(namespace)
	source := cache.ToListerWatcherWithContext(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return objects.Watch(ctx, options)
		},
	})

	decode := func(raw []byte, isJSON bool) (runtime.Object, error) {
		out := &metav1.PartialObjectMetadata{}
		return out, lists.Decode(raw, isJSON, out)
	}

	settled := func() bool { return true }
	permitted := permissions.Add(lists.NewListWatch(source, decode, identify), namespace, resource.Resource, settled)
	informer := cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(permitted, lists.NotStreamed{}),
		&metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{ObjectDescription: resource.Resource})
	utilruntime.Must(informer.SetTransform(identify)) // it has not started
	return informer
}

func versionIn(informer cache.SharedIndexInformer, key types.NamespacedName) string {
	item, exists, err := informer.GetIndexer().GetByKey(cache.NewObjectName(key.Namespace, key.Name).String())
	if err != nil || !exists {
		return ""
	}
	return item.(*identity).resourceVersion
}

// keptBytes bounds the memory of the recently read ConfigMaps. Each ConfigMap has at most 1 MiB.
const keptBytes = 4 << 20

// recent caches read objects for all referrers. No caller may change a cached object.
type recent struct {
	// limit bounds the total bytes. With 0, nothing is cached.
	limit int

	mu sync.Mutex
	// kept has the objects in the order of their last use.
	kept []sized
}

type sized interface {
	client.Object
	Size() int
}

func (r *recent) get(key types.NamespacedName, version string) client.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.kept, func(object sized) bool { return client.ObjectKeyFromObject(object) == key })
	if at < 0 || r.kept[at].GetResourceVersion() != version {
		return nil
	}

	object := r.kept[at]
	r.kept = append(slices.Delete(r.kept, at, at+1), object)
	return object
}

// put caches an object. It removes older versions of it, and the least recently used objects.
func (r *recent) put(object client.Object) {
	entered, ok := object.(sized)
	if !ok || entered.Size() > r.limit {
		return
	}

	r.forget(client.ObjectKeyFromObject(object), "")

	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, entered)
	size := 0
	for i := range slices.Backward(r.kept) {
		if size += r.kept[i].Size(); size > r.limit {
			r.kept = slices.Delete(r.kept, 0, i+1)
			return
		}
	}
}

// forget drops an object in other versions than this one.
func (r *recent) forget(key types.NamespacedName, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = slices.DeleteFunc(r.kept, func(object sized) bool {
		return client.ObjectKeyFromObject(object) == key && object.GetResourceVersion() != version
	})
}
