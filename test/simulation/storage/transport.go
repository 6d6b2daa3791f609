package storage

import (
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Transport sends the requests of a client to a handler instead of a network.
type Transport struct {
	// Handle answers a request. It may block.
	Handle func(*Request) (*http.Response, error)
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	parsed, err := NewRequest(request)
	if err != nil {
		return answer(http.StatusNotFound, []byte(err.Error())), nil //nolint:nilerr // the API server answers such a request with 404
	}
	response, err := t.Handle(parsed)
	if response != nil {
		response.Request = request
	}
	return response, err
}

// Done returns the done channel of the request's context.
func (r *Request) Done() <-chan struct{} { return r.http.Context().Done() }

// Err returns the reason why the request's context ended.
func (r *Request) Err() error { return r.http.Context().Err() }

// Direct returns a transport that serves each request immediately, and delivers all events after
// each request.
func Direct(store *Store) *Transport {
	var mu sync.Mutex
	var watches []*Watch
	return &Transport{Handle: func(r *Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		response := store.Serve(r)
		if opened := WatchOf(response); opened != nil {
			watches = append(watches, opened)
		}
		for _, watch := range watches {
			for watch.Open() && watch.Deliver() {
				continue
			}
		}
		return response, nil
	}}
}

// Config returns the configuration of a client that uses a transport.
func Config(transport *Transport) *rest.Config {
	return &rest.Config{
		Host: "http://model", QPS: -1, Transport: transport,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
	}
}

// Mapper returns the REST mapper of the kinds that the model serves.
func Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, resource := range allResources {
		scope := meta.RESTScopeNamespace
		if resource.Cluster {
			scope = meta.RESTScopeRoot
		}
		mapper.AddSpecific(resource.GroupVersionKind(), resource.GroupVersionResource, resource.GroupVersionResource, scope)
	}
	return mapper
}
