// Package optional follows a kind that a cluster has only where somebody installed its CustomResourceDefinition, which may come and go
// while the operator runs.
//
// The CustomResourceDefinition is watched by its name. While it is established and serves the version, the objects of the kind are in
// a cache of their own, which ends with it: no reflector is left that asks for what is not there. Whoever uses the kind is reconciled
// at both. NewClient returns a client for these kinds and all others; it finds no such kind while there is none.
// docs/adr/0032-optional-apis.md says why it is done this way.
package optional

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Options say which kind is followed, and what of its objects is kept.
type Options struct {
	// Kind is a namespaced kind, whose type has to be in the scheme.
	Kind schema.GroupVersionKind
	// Resource is its name in URLs, for example httproutes. With the group it is the name of the CustomResourceDefinition. The operator
	// needs the RBAC permissions to list and watch both.
	Resource string
	// Cache narrows what is cached.
	Cache cache.ByObject
}

// API is a kind that may or may not be served. Make it with New, and give its Source to the one controller that uses it.
type API struct {
	options Options
	config  *rest.Config
	http    *http.Client
	scheme  *runtime.Scheme
	// decided is closed by decide once it is known whether the kind is served and, if so, its objects are.
	decided chan struct{}
	decide  sync.Once

	mu sync.RWMutex
	// now is nil while there is a problem.
	now     *period
	problem string
}

// period is a time in which the kind is served.
type period struct {
	// ended is done when the kind is not served any more.
	ended context.Context
	// client reads from the cache, with read-your-writes consistency, and writes.
	client client.Client
}

// New returns an API that is not followed yet. It connects as the cluster does, which is a manager, say.
func New(to cluster.Cluster, options Options) *API {
	a := &API{
		options: options, config: to.GetConfig(), http: to.GetHTTPClient(), scheme: to.GetScheme(), decided: make(chan struct{}),
	}
	a.problem = fmt.Sprintf("whether CustomResourceDefinition %q exists is not known yet", a.crd())
	return a
}

// NewStatic returns an API that is not followed, and always has this problem, "" for none. It is for programs that ask once, and has no
// Source.
func NewStatic(problem string) *API { return &API{problem: problem} }

func (a *API) crd() string { return a.options.Resource + "." + a.options.Kind.Group }

// Problem says why there are no objects of the kind, in words that name the CustomResourceDefinition; "" while there may be.
func (a *API) Problem() string {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.problem
}

// current returns the period that lasts, nil where none does.
func (a *API) current() *period {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.now
}

// set begins a period, or says why there is none, unless the context has ended: then somebody else says so. It reports whether the
// problem is another one than before.
func (a *API) set(ctx context.Context, now *period, problem string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil || a.problem == problem {
		return false
	}
	a.now, a.problem = now, problem
	return true
}

// noMatch is what a client says of a kind that is not served.
func (a *API) noMatch() error {
	return &meta.NoKindMatchError{GroupKind: a.options.Kind.GroupKind(), SearchedVersions: []string{a.options.Kind.Version}}
}

// mapper knows the kind without asking the API server.
func (a *API) mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	plural := a.options.Kind.GroupVersion().WithResource(a.options.Resource)
	mapper.AddSpecific(a.options.Kind, plural, plural, meta.RESTScopeNamespace)
	return mapper
}

// newObject returns an empty object of the kind.
func (a *API) newObject() (client.Object, error) {
	made, err := a.scheme.New(a.options.Kind)
	if err != nil {
		return nil, fmt.Errorf("failed to make a %s: %w", a.options.Kind.Kind, err)
	}
	object, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("failed to make a %s: a %T is no object", a.options.Kind.Kind, made)
	}
	return object, nil
}

// newCache returns a cache of the objects, of which one is given, and a client that reads from it. Neither makes a request before it is
// used. Both are for one period: what the client waits to see of its own writes ends with it.
func (a *API) newCache(object client.Object) (cache.Cache, client.Client, error) {
	objects, err := cache.New(a.config, cache.Options{
		HTTPClient: a.http, Scheme: a.scheme, Mapper: a.mapper(), DefaultWatchErrorHandler: quietly,
		ReaderFailOnMissingInformer: true, ByObject: map[client.Object]cache.ByObject{object: a.options.Cache},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("failed to make the cache: %w", err)
	}
	reader, err := client.New(a.config, client.Options{
		HTTPClient: a.http, Scheme: a.scheme, Mapper: a.mapper(),
		Cache: &client.CacheOptions{Reader: objects, EnableReadYourWritesConsistency: ptr.To(true)},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("failed to make the client: %w", err)
	}
	return objects, reader, nil
}
