package reference

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
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
			out := &internalversion.List{}
			add := func(listed *metav1.PartialObjectMetadata) {
				out.Items = append(out.Items, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
					Namespace: listed.Namespace, Name: listed.Name, ResourceVersion: listed.ResourceVersion,
				}})
			}
			list, err := objects.List(lists.WithItems(ctx, lists.Items{
				Reset: func() { out.Items = nil },
				Each: func(raw []byte, isJSON bool) error {
					listed, decode := &metav1.PartialObjectMetadata{}, (*metav1.PartialObjectMetadata).Unmarshal
					if isJSON {
						decode = func(into *metav1.PartialObjectMetadata, raw []byte) error { return json.Unmarshal(raw, into) }
					}
					err := decode(listed, raw)
					add(listed)
					return err
				},
			}), options)
			if err != nil {
				return nil, err
			}
			for i := range list.Items { // without the transport of internal/lists
				add(&list.Items[i])
			}
			out.ResourceVersion, out.Continue = list.ResourceVersion, list.Continue
			return out, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return objects.Watch(ctx, options)
		},
	}
}
