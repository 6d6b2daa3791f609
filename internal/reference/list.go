package reference

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/example/nginx-operator/internal/lists"
)

// pageSize is the page size of a list. Servers that stream lists (Kubernetes 1.34 and later) ignore
// it.
const pageSize = 500

// listWatch lists and watches the metadata of the objects. Its lists have only namespaces, names, and
// resource versions: the metadata of 500 objects can have hundreds of MiB.
func (s *store) listWatch() *cache.ListWatch {
	objects := s.client.Resource(s.resource).Namespace(s.namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			// From the watch cache ("0"), an older server sends all objects at once and ignores the
			// limit.
			if options.ResourceVersion == "0" {
				options.ResourceVersion = ""
			}
			if options.Limit == 0 {
				options.Limit = pageSize
			}
			return lists.Collect(ctx, func(ctx context.Context) (runtime.Object, error) { return objects.List(ctx, options) }, decode, identity)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return objects.Watch(ctx, options)
		},
	}
}

func decode(raw []byte, isJSON bool) (runtime.Object, error) {
	out := &metav1.PartialObjectMetadata{}
	return out, lists.Decode(raw, isJSON, out)
}

// identity returns the namespace, the name, and the resource version of an item.
func identity(item runtime.Object) (runtime.Object, error) {
	listed, err := meta.Accessor(item)
	if err != nil {
		return nil, fmt.Errorf("failed to read the metadata of an item: %w", err)
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: listed.GetNamespace(), Name: listed.GetName(), ResourceVersion: listed.GetResourceVersion(),
	}}, nil
}
