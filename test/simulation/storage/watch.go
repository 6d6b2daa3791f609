package storage

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// matches reports whether the request selects an object.
func (r *Request) matches(version *Version) bool {
	if version.Resource != r.Resource || r.Namespace != "" && version.Namespace != r.Namespace {
		return false
	}
	if text := r.Query.Get("fieldSelector"); text != "" {
		selector, err := fields.ParseSelector(text)
		if err != nil || !selector.Matches(fields.Set{"metadata.name": version.Name, "metadata.namespace": version.Namespace}) {
			return false
		}
	}
	if text := r.Query.Get("labelSelector"); text != "" {
		selector, err := labels.Parse(text)
		if err != nil || !selector.Matches(labels.Set(version.Meta().GetLabels())) {
			return false
		}
	}
	return true
}

// typeMeta returns the version and the kind of objects in the requested form: complete, or only
// their metadata.
func (r *Request) typeMeta() (version, kind string) {
	if r.metadata {
		return metav1.SchemeGroupVersion.String(), "PartialObjectMetadata"
	}
	return r.Resource.GroupVersion().String(), r.Resource.Kind
}

// form returns an object in the requested form.
func (r *Request) form(of *Version) json.RawMessage {
	if !r.metadata {
		return of.Raw
	}
	version, kind := r.typeMeta()
	return encode(map[string]any{"apiVersion": version, "kind": kind, "metadata": of.Object["metadata"]})
}

// view returns the resource version that a list or a new watch sees.
func (s *Store) view(r *Request) int64 {
	if r.View > 0 {
		return min(r.View, s.revision)
	}
	return s.revision
}

func (s *Store) list(r *Request) []byte {
	items := []json.RawMessage{}
	for _, version := range s.ListAt(r.Resource, r.Namespace, s.view(r)) {
		if r.matches(version) {
			items = append(items, r.form(version))
		}
	}
	version, kind := r.typeMeta()
	return encode(map[string]any{
		"apiVersion": version, "kind": kind + "List", "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(s.view(r), 10)},
	})
}

// Watch is an open watch. It gets events only through Deliver.
type Watch struct {
	*Request
	store *Store
	// revision is the resource version up to which events were delivered.
	revision int64
	stream   *stream
}

// watch opens a watch. WatchOf returns it from the body of the response.
func (s *Store) watch(r *Request) *http.Response {
	watch := &Watch{Request: r, store: s, stream: newStream(r.http.Context())}
	watch.stream.watch = watch
	from := r.Query.Get("resourceVersion")
	initial := r.Query.Get("sendInitialEvents") == "true"
	if initial || from == "" || from == "0" {
		watch.revision = s.view(r)
		for _, version := range s.ListAt(r.Resource, r.Namespace, watch.revision) {
			if r.matches(version) {
				watch.send("ADDED", r.form(version))
			}
		}
		if initial {
			watch.bookmark()
		}
	} else {
		watch.revision = parseRevision(from)
	}
	return respond(http.StatusOK, watch.stream)
}

// WatchOf returns the watch that a response opens, or nil.
func WatchOf(response *http.Response) *Watch {
	if found, ok := response.Body.(*stream); ok {
		return found.watch
	}
	return nil
}

// bookmark sends the end of the initial events.
func (w *Watch) bookmark() {
	version, kind := w.typeMeta()
	w.send("BOOKMARK", encode(map[string]any{
		"apiVersion": version, "kind": kind,
		"metadata": map[string]any{
			"resourceVersion": strconv.FormatInt(w.revision, 10),
			"annotations":     map[string]any{metav1.InitialEventsAnnotationKey: "true"},
		},
	}))
}

func (w *Watch) send(event string, object json.RawMessage) {
	w.stream.write(append(encode(map[string]any{"type": event, "object": object}), '\n'))
}

// Open reports whether the client still reads.
func (w *Watch) Open() bool { return !w.stream.isClosed() }

// event returns the watch event for a version, or "" if the watch gets none.
func (w *Watch) event(version *Version) (string, *Version) {
	if version.Resource != w.Resource {
		return "", nil
	}
	before := w.store.before(version.Key, version.Revision)
	was := before != nil && !before.Deleted && w.matches(before)
	is := !version.Deleted && w.matches(version)
	switch {
	case was && is:
		return "MODIFIED", version
	case is:
		return "ADDED", version
	case was:
		return "DELETED", version
	}
	return "", nil
}

// Oldest returns the time of the write that causes the next event, or false if there is no event.
func (w *Watch) Oldest() (time.Time, bool) {
	for _, version := range w.store.Since(w.revision) {
		if event, _ := w.event(version); event != "" {
			return version.At, true
		}
		w.revision = version.Revision
	}
	return time.Time{}, false
}

// Deliver sends the next event, and reports whether there was one.
func (w *Watch) Deliver() bool {
	for _, version := range w.store.Since(w.revision) {
		w.revision = version.Revision
		if event, object := w.event(version); event != "" {
			w.send(event, w.form(object))
			return true
		}
	}
	return false
}

// Expire ends the watch as if its events were compacted, so that the client lists again.
func (w *Watch) Expire() {
	err := apierrors.NewResourceExpired("too old resource version")
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.send("ERROR", encode(status))
	w.stream.end()
}

// stream is the body of a watch. Read blocks until the next event.
type stream struct {
	watch  *Watch
	mu     sync.Mutex
	filled *sync.Cond
	rest   []byte
	ended  bool
	closed bool
	stop   func() bool
}

func newStream(ctx context.Context) *stream {
	s := &stream{}
	s.filled = sync.NewCond(&s.mu)
	s.stop = context.AfterFunc(ctx, func() { _ = s.Close() })
	return s
}

func (s *stream) write(event []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, event...)
	s.filled.Broadcast()
}

// Read implements io.Reader.
func (s *stream) Read(into []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.rest) == 0 && !s.ended && !s.closed {
		s.filled.Wait()
	}
	if s.closed || len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(into, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.filled.Broadcast()
	return nil
}

// end closes the stream after the written events are read.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.filled.Broadcast()
}

func (s *stream) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed || s.ended
}
