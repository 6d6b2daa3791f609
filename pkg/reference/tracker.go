// Package reference watches the ConfigMaps and Secrets that objects reference.
//
// A spec can reference any object of its namespace, so the metadata of all of them is watched. The
// informers have only the names and the resourceVersion. The content of an object is read only if
// it is referenced, and once for each resourceVersion. Only the derived values (Derive) and up to
// 4 MiB of recently read ConfigMaps are cached, and no Secrets. A reconcile of an object with
// unchanged references costs no request. For the reasons, see docs/adr/0014-references.md.
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
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/example/nginx-operator/pkg/access"
)

// Referrers returns a request for every object that references the object with that key.
type Referrers func(ctx context.Context, key types.NamespacedName) []reconcile.Request

// Tracker knows the resourceVersion of every object of a kind. Create it with NewTracker.
type Tracker struct {
	resource  schema.GroupVersionResource
	reader    client.Reader
	referrers Referrers
	after     func(context.Context)
	// informers are by namespace, or at "". Without informers, nothing is cached.
	informers map[string]cache.SharedIndexInformer
	// flights are the reads and derivations in progress.
	flights singleflight.Group
	// recent are the recently read objects.
	recent recent

	mu sync.RWMutex
	// derived holds the derived values of referenced objects.
	derived map[types.NamespacedName]derived
	// early has the objects that were read before the list of their informer.
	early sets.Set[types.NamespacedName]
}

// NewTrackers returns the trackers of all ConfigMaps and of all Secrets in the namespaces, or in
// all namespaces if there are none. They report missing permissions in a namespace.
func NewTrackers(
	config *rest.Config, http *http.Client, reader client.Reader, permissions *access.Namespaces, namespaces ...string,
) (configMaps, secrets *Tracker, err error) {
	watcher, err := metadata.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to create the metadata client: %w", err)
	}

	core := corev1.SchemeGroupVersion
	configMaps = NewTracker(watcher, core.WithResource("configmaps"), reader, permissions, namespaces...)
	configMaps.recent.limit = keptBytes
	secrets = NewTracker(watcher, core.WithResource("secrets"), reader, permissions, namespaces...)
	return configMaps, secrets, nil
}

// NewTracker returns a tracker of all objects of a resource in the namespaces, or in all namespaces
// if there are none, with nil permissions. The reader reads their content from the API server.
func NewTracker(
	watcher metadata.Interface, resource schema.GroupVersionResource, reader client.Reader, permissions *access.Namespaces,
	namespaces ...string,
) *Tracker {
	t := NewDirect(resource, reader)
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		t.informers[namespace] = newInformer(watcher, resource, namespace, permissions)
	}
	return t
}

// NewDirect returns a tracker that watches nothing: each call reads the object again. It is for
// programs that read each object once, and cannot be the source of a controller.
func NewDirect(resource schema.GroupVersionResource, reader client.Reader) *Tracker {
	return &Tracker{
		resource: resource, reader: reader,
		informers: map[string]cache.SharedIndexInformer{},
		derived:   map[types.NamespacedName]derived{}, early: sets.New[types.NamespacedName](),
	}
}

// current returns the resourceVersion of an object, or "" if it does not exist, and whether the
// tracker knows that. For a tracker of namespaces, the objects of other namespaces do not exist.
func (t *Tracker) current(key types.NamespacedName) (resourceVersion string, isKnown bool) {
	for _, namespace := range []string{metav1.NamespaceAll, key.Namespace} {
		if informer, isWatched := t.informers[namespace]; isWatched {
			return versionIn(informer, key), informer.HasSynced()
		}
	}
	return "", len(t.informers) > 0
}

// Source returns the source of a controller. It starts the tracker, and sends a request for every
// referrer of an object that was created, changed, or deleted. The list begins when after returns,
// because a large cluster has many more of these objects than others. The controller does not wait
// for it: until it is complete, each object is read from the API server. So an object may have
// changed between its read and the list, and then the referrers of all these objects get a request.
// The list itself requests nothing, because nobody references most of its objects.
func (t *Tracker) Source(referrers Referrers, after func(context.Context)) source.Source {
	t.referrers, t.after = referrers, after
	return t
}

// Start implements source.Source.
func (t *Tracker) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	for namespace, informer := range t.informers {
		changed := func(object any) {
			if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
				t.changed(ctx, types.NamespacedName(key), queue, 0)
			}
		}

		_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(object any, isInInitialList bool) {
				if !isInInitialList {
					changed(object)
				}
			},
			UpdateFunc: func(before, object any) {
				if *before.(*identity) != *object.(*identity) {
					changed(object)
				}
			},
			DeleteFunc: changed,
		})
		if err != nil {
			return fmt.Errorf("failed to watch %s: %w", t.resource.Resource, err)
		}

		go func() {
			t.after(ctx)
			go informer.RunWithContext(ctx)
			if cache.WaitFor(ctx, "", informer.HasSyncedChecker()) {
				t.reportEarly(ctx, namespace, queue)
			}
		}()
	}
	return nil
}

// changed drops what was derived from another version of an object, and requests its referrers.
func (t *Tracker) changed(
	ctx context.Context, key types.NamespacedName, queue workqueue.TypedRateLimitingInterface[reconcile.Request], priority int,
) {
	t.forget(key)
	for _, request := range t.referrers(ctx, key) {
		if prioritized, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
		} else {
			queue.Add(request)
		}
	}
}

func (t *Tracker) reportEarly(ctx context.Context, namespace string, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	t.mu.Lock()
	var keys []types.NamespacedName
	for key := range t.early {
		if namespace == metav1.NamespaceAll || namespace == key.Namespace {
			keys = append(keys, key)
			delete(t.early, key)
		}
	}
	t.mu.Unlock()

	for _, key := range keys {
		t.changed(ctx, key, queue, handler.LowPriority)
	}
}

func (t *Tracker) noteEarly(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.early.Insert(key)
}

// Await waits until the list is complete, or until the context ends.
func (t *Tracker) Await(ctx context.Context) {
	for _, informer := range t.informers {
		cache.WaitFor(ctx, "", informer.HasSyncedChecker())
	}
}
