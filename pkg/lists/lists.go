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

	"k8s.io/apimachinery/pkg/runtime"
)

// bufferSize is the size in bytes of the buffer for reading a response.
const bufferSize = 64 << 10

// errIncomplete is the error of a list whose items could not all be read.
var errIncomplete = errors.New("failed to read a list")

// items receives the items of a list.
type items struct {
	// reset is called before the first item, also if the request is repeated.
	reset func()
	// each is called with each item: a protocol buffer if isJSON is false. raw is valid until each
	// returns.
	each func(raw []byte, isJSON bool) error
}

// key is the key of the *items in the context of a list request. The client then receives the list
// without items.
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
