// Package lists reads the items of a list one at a time. Clients decode a list as a whole, so a
// list of large objects takes a multiple of their size in memory, even if the caller keeps a few
// bytes of each object. A page does not bound that: the largest object has 1.5 MiB, and Kubernetes
// 1.33 ignores the page size of a list from its cache.
package lists

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

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

const bufferSize = 64 << 10

var errIncomplete = errors.New("failed to read a list")

type items struct {
	// reset is called before the first item, also if the request is repeated.
	reset func()
	// each gets an item, which is valid until it returns: a protocol buffer if isJSON is false.
	each func(raw []byte, isJSON bool) error
}

// key is the key of the *items in a context. The client then receives a list without items.
type key struct{}

// Wrap returns a transport that passes the items of a list to the source of NewListWatch. Other
// requests and responses do not change.
func Wrap(inner http.RoundTripper) http.RoundTripper { return transport{inner} }

type transport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	receiver, _ := request.Context().Value(key{}).(*items)
	if receiver == nil {
		return t.RoundTripper.RoundTrip(request)
	}

	// A second transport of Wrap would find no items.
	response, err := t.RoundTripper.RoundTrip(request.WithContext(context.WithValue(request.Context(), key{}, (*items)(nil))))
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}

	defer func() { _ = response.Body.Close() }()
	receiver.reset()
	from := bufio.NewReaderSize(response.Body, bufferSize)
	var rest []byte
	if strings.HasPrefix(response.Header.Get("Content-Type"), runtime.ContentTypeProtobuf) {
		rest, err = readProtobuf(from, func(raw []byte) error { return receiver.each(raw, false) })
	} else {
		rest, err = readJSON(from, func(raw []byte) error { return receiver.each(raw, true) })
	}

	if err != nil {
		return nil, fmt.Errorf("%w: %w", errIncomplete, err)
	}

	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(rest)), int64(len(rest))
	return response, nil
}
