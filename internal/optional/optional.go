// Package optional watches a kind whose CustomResourceDefinition is not installed in every cluster,
// and can be added and removed while the operator runs.
//
// The CustomResourceDefinition is watched by its name. While it is established and serves the
// version, a separate cache holds the objects of the kind. The cache ends with the
// CustomResourceDefinition, so that no reflector requests a kind that does not exist. Both changes
// reconcile all users of the kind. NewClient returns a client for these kinds and all others, which
// returns an error for kinds that do not exist. For the reasons, see
// docs/adr/0032-optional-apis.md.
package optional

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Options select the kind and the cached parts of its objects.
type Options struct {
	// Kind is a namespaced kind. The scheme must have its type.
	Kind schema.GroupVersionKind
	// Resource is its name in URLs, for example httproutes. Together with the group it is the name
	// of the CustomResourceDefinition. The operator needs the RBAC permissions to list and watch
	// both.
	Resource string
	// Cache narrows the cache.
	Cache cache.ByObject
	// NewInformer creates the informer of the cache. If it is nil, the cache has an ordinary one.
	NewInformer func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer
}

// API is a kind that can be served or not. Create it with New, and give its Source to the one
// controller that uses it.
type API struct {
	options Options
	config  *rest.Config
	http    *http.Client
	scheme  *runtime.Scheme
	// decided is closed by decide as soon as it is known whether the kind is served, and, if it is,
	// its objects are cached.
	decided chan struct{}
	decide  sync.Once

	mu sync.RWMutex
	// now is nil if there is a problem.
	now     *period
	problem string
}

// period is a time during which the kind is served.
type period struct {
	// ended is done when the kind is no longer served.
	ended context.Context
	// client reads from the cache, with read-your-writes consistency, and writes.
	client client.Client
}

// New returns an API that is not watched yet. It uses the connection of the cluster, for example a
// manager.
func New(to cluster.Cluster, options Options) *API {
	a := &API{
		options: options, config: to.GetConfig(), http: to.GetHTTPClient(), scheme: to.GetScheme(), decided: make(chan struct{}),
	}
	a.problem = fmt.Sprintf("whether CustomResourceDefinition %q exists is not known yet", a.crd())
	return a
}

// NewStatic returns an API that is not watched and always has this problem, or none if it is "". It
// is for programs that read each object once, and has no Source.
func NewStatic(problem string) *API { return &API{problem: problem} }

func (a *API) crd() string { return a.options.Resource + "." + a.options.Kind.Group }

// Problem returns the reason why there are no objects of the kind, with the name of the
// CustomResourceDefinition, or "" if the kind is served.
func (a *API) Problem() string {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.problem
}

// current returns the current period, or nil if there is none.
func (a *API) current() *period {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.now
}

// set starts a period, or records the problem. If the context has ended, it does nothing, because a
// later call decides. It reports whether the problem changed.
func (a *API) set(ctx context.Context, now *period, problem string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil || a.problem == problem {
		return false
	}
	a.now, a.problem = now, problem
	return true
}

// noMatch returns a client's error for a kind that is not served.
func (a *API) noMatch() error {
	return &meta.NoKindMatchError{GroupKind: a.options.Kind.GroupKind(), SearchedVersions: []string{a.options.Kind.Version}}
}

// mapper knows the kind without a request to the API server.
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
		return nil, fmt.Errorf("failed to create a %s: %w", a.options.Kind.Kind, err)
	}
	object, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("failed to create a %s: a %T is not an object", a.options.Kind.Kind, made)
	}
	return object, nil
}

// newCache returns a cache of the objects and a client that reads from it. The argument is an
// object of the kind. Neither sends a request before its use. Both are for one period, because the
// client's read-your-writes state ends with it.
func (a *API) newCache(object client.Object) (cache.Cache, client.Client, error) {
	objects, err := cache.New(a.config, cache.Options{
		HTTPClient: a.http, Scheme: a.scheme, Mapper: a.mapper(), DefaultWatchErrorHandler: logWatchError,
		ReaderFailOnMissingInformer: true, ByObject: map[client.Object]cache.ByObject{object: a.options.Cache},
		NewInformer: a.options.NewInformer,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("failed to create the cache: %w", err)
	}
	reader, err := client.New(a.config, client.Options{
		HTTPClient: a.http, Scheme: a.scheme, Mapper: a.mapper(),
		Cache: &client.CacheOptions{Reader: objects, EnableReadYourWritesConsistency: ptr.To(true)},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("failed to create the client: %w", err)
	}
	return objects, reader, nil
}
