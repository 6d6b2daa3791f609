package lists

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
)

// pageSize is the page size of a list after a list that did not end in time.
const pageSize = 500

// NewListWatch returns a source of an informer that lists item by item: it transforms each item
// before it decodes the next one. decode returns an item of a response (Decode), and transform is
// that of the informer. A watch needs no such help: an informer transforms each event before it
// stores it. The requests of the inner source need the transport of Wrap.
func NewListWatch(
	inner toolscache.ListerWatcherWithContext, decode func(raw []byte, isJSON bool) (runtime.Object, error),
	transform toolscache.TransformFunc,
) *toolscache.ListWatch {
	l := &lister{inner: inner, decode: decode, transform: transform}
	return &toolscache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: inner.WatchWithContext}
}

type lister struct {
	inner     toolscache.ListerWatcherWithContext
	decode    func(raw []byte, isJSON bool) (runtime.Object, error)
	transform toolscache.TransformFunc
	// paged is true if a list was incomplete. An API server ends a list after a minute.
	paged bool
}

func (l *lister) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if l.paged && options.Continue == "" {
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
	}
	if l.paged && options.Limit == 0 {
		options.Limit = pageSize
	}
	list, err := Collect(ctx, func(ctx context.Context) (runtime.Object, error) {
		return l.inner.ListWithContext(ctx, options)
	}, l.decode, l.keep)
	if err != nil {
		l.paged = l.paged || errors.Is(err, ErrIncomplete)
		return nil, err
	}
	return list, nil
}

// keep returns the transformed form of an item.
func (l *lister) keep(item runtime.Object) (runtime.Object, error) {
	transformed, err := l.transform(item)
	if err != nil {
		return nil, err
	}
	kept, ok := transformed.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("an item of a list has become a %T", transformed)
	}
	return kept, nil
}
