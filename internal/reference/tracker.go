// Package reference watches the ConfigMaps and Secrets that NginxOperators reference.
//
// A spec can reference any object of its namespace, so all of them are watched. The watch receives
// metadata only, and stores only the resourceVersion. The content of an object is read only if it
// is referenced, and once for each resourceVersion. Only the derived values are cached (Derive).
// Therefore no Secret stays in the operator's memory longer than its use, and recently read
// ConfigMaps take at most 4 MiB. A reconcile of an object with unchanged references costs no
// request. For the reasons, see docs/adr/0014-references.md.
package reference

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/example/nginx-operator/internal/access"
)

// Referrers returns a request for every object that references the object with that key.
type Referrers func(ctx context.Context, key types.NamespacedName) []reconcile.Request

// Tracker knows the existence and the resourceVersion of every object of one kind. Create it with
// NewTracker.
type Tracker struct {
	client   metadata.Interface
	resource schema.GroupVersionResource
	reader   client.Reader
	// access knows the namespaces without permissions. It is nil if all namespaces are watched.
	access    *access.Namespaces
	referrers Referrers
	after     func(context.Context)
	// direct is true if the tracker watches and caches nothing.
	direct bool
	// stores has the store of each namespace.
	stores []*store
	// flights are the reads and derivations in progress.
	flights singleflight.Group
	// recent are the recently read objects.
	recent recent

	mu sync.RWMutex
	// derived holds the derived values of referenced objects.
	derived map[types.NamespacedName]derived
	// early has the versions of the objects that were read before the list of their namespace was
	// complete: noObject if the object did not exist, and severalVersions after different answers.
	early map[types.NamespacedName]version
	// changed is called after each change of a tracked object, except for the first list. It is nil
	// until Start.
	changed func(types.NamespacedName)
}

// NewTrackers returns the trackers of all ConfigMaps and of all Secrets in the namespaces, or in all
// namespaces if there are none. They report missing permissions in a namespace.
func NewTrackers(
	config *rest.Config, http *http.Client, reader client.Reader, permissions *access.Namespaces, namespaces ...string,
) (configMaps, secrets *Tracker, err error) {
	watcher, err := metadata.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to create the metadata client: %w", err)
	}
	core := corev1.SchemeGroupVersion
	configMaps = NewTracker(watcher, core.WithResource("configmaps"), reader, namespaces...)
	configMaps.recent.limit = keptBytes
	secrets = NewTracker(watcher, core.WithResource("secrets"), reader, namespaces...)
	configMaps.access, secrets.access = permissions, permissions
	return configMaps, secrets, nil
}

// NewTracker returns a tracker of all objects of a resource in the namespaces, or in all namespaces
// if there are none. The reader reads their content from the API server.
func NewTracker(
	watcher metadata.Interface, resource schema.GroupVersionResource, reader client.Reader, namespaces ...string,
) *Tracker {
	t := &Tracker{
		client: watcher, resource: resource, reader: reader,
		derived: map[types.NamespacedName]derived{}, early: map[types.NamespacedName]version{},
	}
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		t.stores = append(t.stores, &store{Tracker: t, namespace: namespace, versions: map[uint64]version{}, synced: make(chan struct{})})
	}
	return t
}

// NewDirect returns a tracker that watches nothing: each call reads the object again. It is for
// programs that read each object once, and cannot be the source of a controller.
func NewDirect(resource schema.GroupVersionResource, reader client.Reader) *Tracker {
	return &Tracker{resource: resource, reader: reader, direct: true}
}

// current returns the version of an object, noObject if it does not exist, and whether the tracker knows
// that.
func (t *Tracker) current(key types.NamespacedName) (version, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.storeOf(key.Namespace)
	return s.current(key), !t.direct && s.isListed()
}

// Source returns the source of a controller. It starts the tracker, and sends a request for every
// referrer of an object that was created, changed, or deleted. The list begins when the function
// returns, because a large cluster has many more of these objects than others. The controller does
// not wait for it: until it is complete, each object is read from the API server, and if it has
// changed by then, its referrers get a request.
func (t *Tracker) Source(referrers Referrers, after func(context.Context)) source.Source {
	t.referrers, t.after = referrers, after
	return t
}

// Start implements source.Source.
func (t *Tracker) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed = func(key types.NamespacedName) {
		for _, request := range t.referrers(ctx, key) {
			queue.Add(request)
		}
	}
	for _, s := range t.stores {
		source, ended := t.access.Add(s.listWatch(), s.namespace, t.resource.Resource, func() bool { return true })
		reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, t.client),
			&metav1.PartialObjectMetadata{}, s, cache.ReflectorOptions{Name: "reference", TypeDescription: t.resource.Resource})
		go func() {
			defer ended()
			t.after(ctx)
			reflector.RunWithContext(ctx)
		}()
	}
	return nil
}

// Await waits until the list is complete, or until the context ends.
func (t *Tracker) Await(ctx context.Context) {
	for _, s := range t.stores {
		select {
		case <-s.synced:
		case <-ctx.Done():
		}
	}
}

// storeOf returns the store of a namespace, or nil if its objects are not watched.
func (t *Tracker) storeOf(namespace string) *store {
	for _, s := range t.stores {
		if s.covers(namespace) {
			return s
		}
	}
	return nil
}

// note records which version of an object was read without knowing the current one. The caller uses
// this version, so its referrers get a request if the list has another one.
func (t *Tracker) note(key types.NamespacedName, version version) {
	t.mu.Lock()
	changed := t.changed
	if changed == nil {
		t.mu.Unlock()
		return
	}
	differs := false
	if s := t.storeOf(key.Namespace); s.isListed() {
		differs = s.current(key) != version
	} else if earlier, found := t.early[key]; found && earlier != version {
		t.early[key] = severalVersions
	} else {
		t.early[key] = version
	}
	t.mu.Unlock()
	if differs {
		changed(key)
	}
}
