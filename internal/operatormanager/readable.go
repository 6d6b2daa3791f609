package operatormanager

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/bounds"
)

// NewInformer makes an informer of a cache (cache.Options.NewInformer).
type NewInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// Informers returns what makes the informers of the cache, with the InstanceIndex, and such that a NginxOperator that cannot be decoded
// fails alone. A typed client decodes a list as a whole: one object would keep all others from being reconciled, in every namespace,
// for as long as it is stored.
func Informers(cfg *rest.Config) (NewInformer, error) {
	dynamicClient, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("failed to make the client that reads objects one by one: %w", err)
	}
	source := dynamicClient.Resource(v1alpha2.GroupVersion.WithResource("nginxoperators"))
	return func(typed toolscache.ListerWatcher, kind runtime.Object, resync time.Duration,
		indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		if _, ours := kind.(*v1alpha2.NginxOperator); ours {
			typed = toolscache.ToListWatcherWithWatchListSemantics(oneByOne(source), dynamicClient)
		}
		indexInstances(kind, indexers)
		return toolscache.NewSharedIndexInformer(typed, kind, resync, indexers)
	}, nil
}

// oneByOne lists and watches JSON objects, and decodes each on its own.
func oneByOne(source dynamic.ResourceInterface) *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := source.List(ctx, options)
			if err != nil {
				return nil, err
			}
			out := &v1alpha2.NginxOperatorList{Items: make([]v1alpha2.NginxOperator, 0, len(list.Items))}
			out.ResourceVersion, out.Continue, out.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(), list.GetRemainingItemCount()
			for i := range list.Items {
				out.Items = append(out.Items, *bounds.ReadAlone(&list.Items[i]))
				// A page is large, and need not be there twice.
				list.Items[i].Object = nil
			}
			return out, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.AllowWatchBookmarks = true
			events, err := source.Watch(ctx, options)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
				// The object of an error is a Status; that of a bookmark is a NginxOperator with hardly anything in it.
				if object, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != watch.Error {
					event.Object = bounds.ReadAlone(object)
				}
				return event, true
			}), nil
		},
	}
}

// keepUnreadable goes around a transform that takes annotations away.
func keepUnreadable(transform toolscache.TransformFunc) toolscache.TransformFunc {
	return func(in any) (any, error) {
		object, ok := in.(*v1alpha2.NginxOperator)
		if !ok {
			return transform(in)
		}
		why, unreadable := bounds.Unreadable(object)
		out, err := transform(in)
		if unreadable {
			bounds.MarkUnreadable(object, why)
		}
		return out, err
	}
}
