// Package lists reads the items of a list one at a time. Clients decode a list as a whole, so a list
// of large objects takes a multiple of their size in memory, even if the caller keeps a few bytes of
// each object. A page does not bound that: the largest object has 1.5 MiB, and Kubernetes 1.33
// ignores the page size of a list from its cache.
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

	"k8s.io/apimachinery/pkg/runtime"
)

// bufferSize is the size in bytes of the buffer for reading a response.
const bufferSize = 64 << 10

// ErrIncomplete is the error of a list whose items could not all be read.
var ErrIncomplete = errors.New("failed to read a list")

// Items receives the items of a list.
type Items struct {
	// Reset is called before the first item, also if the request is repeated.
	Reset func()
	// Each is called with each item: a protocol buffer if isJSON is false. raw is valid until Each
	// returns.
	Each func(raw []byte, isJSON bool) error
}

type key struct{}

// WithItems returns a context for a list request of a client with the transport of Wrap. The client
// receives the list without items.
func WithItems(ctx context.Context, items Items) context.Context {
	return context.WithValue(ctx, key{}, &items)
}

// Wrap returns a transport that passes the items of lists to the Items of their context. Other
// requests and responses do not change.
func Wrap(inner http.RoundTripper) http.RoundTripper { return transport{inner} }

type transport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	items, _ := request.Context().Value(key{}).(*Items)
	if items == nil {
		return t.RoundTripper.RoundTrip(request)
	}
	// A second transport of Wrap would find no items.
	response, err := t.RoundTripper.RoundTrip(request.WithContext(context.WithValue(request.Context(), key{}, (*Items)(nil))))
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	defer func() { _ = response.Body.Close() }()
	items.Reset()
	from := bufio.NewReaderSize(response.Body, bufferSize)
	var rest []byte
	if strings.HasPrefix(response.Header.Get("Content-Type"), runtime.ContentTypeProtobuf) {
		rest, err = readProtobuf(from, func(raw []byte) error { return items.Each(raw, false) })
	} else {
		rest, err = readJSON(from, func(raw []byte) error { return items.Each(raw, true) })
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(rest)), int64(len(rest))
	return response, nil
}
