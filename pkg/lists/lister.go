package lists

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	kjson "sigs.k8s.io/json"
)

// pageSize is the page size of a list after a list that did not end in time.
const pageSize = 500

// NewListWatch returns a source of an informer that lists item by item: it transforms each item
// before it decodes the next one. decode returns an item of a response (Decode). Its argument is
// valid until it returns. transform is that of the informer. A watch needs no such help: an informer
// transforms each event before it stores it. The requests of the inner source need the transport of
// Wrap. The informer needs NotStreamed.
func NewListWatch(
	inner toolscache.ListerWatcherWithContext, decode func(raw []byte, isJSON bool) (runtime.Object, error),
	transform toolscache.TransformFunc,
) *toolscache.ListWatch {
	l := &lister{inner: inner, decode: decode, transform: transform}
	return &toolscache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: inner.WatchWithContext}
}

// NotStreamed is the client argument of cache.ToListWatcherWithWatchListSemantics that makes an
// informer list. By default, an informer receives its first list as events of a watch (WatchList,
// KEP-3157), each of which client-go decodes twice. That takes half as long again, and bounds
// nothing that NewListWatch does not bound.
type NotStreamed struct{}

// IsWatchListSemanticsUnSupported is what client-go asks.
func (NotStreamed) IsWatchListSemanticsUnSupported() bool { return true }

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

	list := &internalversion.List{}
	add := func(item runtime.Object) error {
		transformed, err := l.transform(item)
		if err != nil {
			return err
		}

		object, ok := transformed.(runtime.Object)
		if !ok {
			return fmt.Errorf("the transformed item of a list is a %T, not an object", transformed)
		}

		list.Items = append(list.Items, object)
		return nil
	}

	receiver := &items{
		reset: func() { list.Items = nil },
		each: func(raw []byte, isJSON bool) error {
			item, err := l.decode(raw, isJSON)
			if err != nil {
				return err
			}
			return add(item)
		},
	}

	rest, err := l.inner.ListWithContext(context.WithValue(ctx, key{}, receiver), options)
	if err != nil {
		l.paged = l.paged || errors.Is(err, errIncomplete)
		return nil, err
	}
	if err := meta.EachListItem(rest, add); err != nil { // without the transport
		return nil, fmt.Errorf("failed to read a list: %w", err)
	}

	metadata, err := meta.ListAccessor(rest)
	if err != nil {
		return nil, fmt.Errorf("failed to read the metadata of a list: %w", err)
	}

	list.ResourceVersion, list.Continue = metadata.GetResourceVersion(), metadata.GetContinue()
	return list, nil
}

// Decode decodes an item into an object: a protocol buffer if isJSON is false.
func Decode(raw []byte, isJSON bool, into runtime.Object) error {
	if isJSON {
		return kjson.UnmarshalCaseSensitivePreserveInts(raw, into)
	}

	message, ok := into.(interface{ Unmarshal(raw []byte) error })
	if !ok {
		return fmt.Errorf("%T cannot be decoded from a protocol buffer", into)
	}
	return message.Unmarshal(raw)
}
