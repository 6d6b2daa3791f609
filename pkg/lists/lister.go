package lists

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
)

// pageSize is the page size of a list after a list that did not end in time.
const pageSize = 500

// NewListWatch returns a source of an informer that lists item by item: keep returns what the list
// has of an item before the next one is decoded. decode returns an item of a response (Decode). A
// watch needs no such help: an informer transforms each event before it stores it. The requests of
// the inner source need the transport of Wrap.
func NewListWatch(
	inner toolscache.ListerWatcherWithContext, decode func(raw []byte, isJSON bool) (runtime.Object, error),
	keep func(runtime.Object) (runtime.Object, error),
) *toolscache.ListWatch {
	l := &lister{inner: inner, decode: decode, keep: keep}
	return &toolscache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: inner.WatchWithContext}
}

type lister struct {
	inner  toolscache.ListerWatcherWithContext
	decode func(raw []byte, isJSON bool) (runtime.Object, error)
	keep   func(runtime.Object) (runtime.Object, error)
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
