package reference

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keptBytes bounds the memory of the recently read ConfigMaps. Each ConfigMap has at most 1 MiB.
const keptBytes = 4 << 20

// recent caches recently read objects, so that all referrers of an object copy from one read. No
// caller may change a cached object.
type recent struct {
	// limit bounds the total bytes. With 0, nothing is cached.
	limit int

	mu   sync.Mutex
	size int
	// kept has the objects in the order of their last use.
	kept []keptObject
}

type keptObject struct {
	key    types.NamespacedName
	object client.Object
	size   int
}

// get returns an object in a version, or nil if it is not cached.
func (r *recent) get(key types.NamespacedName, version string) client.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.index(key)
	if at < 0 || r.kept[at].object.GetResourceVersion() != version {
		return nil
	}
	found := r.kept[at]
	r.kept = append(slices.Delete(r.kept, at, at+1), found)
	return found.object
}

// put caches an object. It removes older versions of it, and the least recently used objects.
func (r *recent) put(key types.NamespacedName, object client.Object) {
	sized, ok := object.(interface{ Size() int })
	if !ok || sized.Size() > r.limit {
		return
	}
	r.forget(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	entered := keptObject{key, object, sized.Size()}
	r.kept = append(r.kept, entered)
	for r.size += entered.size; r.size > r.limit; r.kept = slices.Delete(r.kept, 0, 1) {
		r.size -= r.kept[0].size
	}
}

// forget drops an object.
func (r *recent) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.index(key); at >= 0 {
		r.size -= r.kept[at].size
		r.kept = slices.Delete(r.kept, at, at+1)
	}
}

// index returns the index of an object, or -1 if it is not cached. The caller holds the lock.
func (r *recent) index(key types.NamespacedName) int {
	return slices.IndexFunc(r.kept, func(kept keptObject) bool { return kept.key == key })
}
