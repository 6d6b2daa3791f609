package reference

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keptBytes bounds what is kept of the ConfigMaps that were read last. Each has 1 MiB at most.
const keptBytes = 4 << 20

// recent keeps the objects that were read last, so that all who name one of them make their copies from one read. Nobody may change
// what it returns.
type recent struct {
	// limit bounds the bytes of all together; with 0 nothing is kept.
	limit int

	mu   sync.Mutex
	size int
	// kept holds them in the order in which they were asked for.
	kept []keptObject
}

type keptObject struct {
	key    types.NamespacedName
	object client.Object
	size   int
}

// get returns an object in a resourceVersion, nil where that is not kept.
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

// put keeps an object in place of its older versions, and of those that were not asked for the longest.
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

// index returns where an object is, -1 where it is not kept. The lock is held.
func (r *recent) index(key types.NamespacedName) int {
	return slices.IndexFunc(r.kept, func(kept keptObject) bool { return kept.key == key })
}
