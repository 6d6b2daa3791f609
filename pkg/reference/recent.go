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

	mu sync.Mutex
	// kept has the objects in the order of their last use.
	kept []sized
}

type sized interface {
	client.Object
	Size() int
}

// get returns an object in a version, or nil if it is not cached.
func (r *recent) get(key types.NamespacedName, version string) client.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.kept, func(object sized) bool { return client.ObjectKeyFromObject(object) == key })
	if at < 0 || r.kept[at].GetResourceVersion() != version {
		return nil
	}

	object := r.kept[at]
	r.kept = append(slices.Delete(r.kept, at, at+1), object)
	return object
}

// put caches an object. It removes older versions of it, and the least recently used objects.
func (r *recent) put(object client.Object) {
	entered, ok := object.(sized)
	if !ok || entered.Size() > r.limit {
		return
	}

	r.forget(client.ObjectKeyFromObject(object), "")

	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, entered)
	size := 0
	for i := range slices.Backward(r.kept) {
		if size += r.kept[i].Size(); size > r.limit {
			r.kept = slices.Delete(r.kept, 0, i+1)
			return
		}
	}
}

// forget drops an object in other versions than this one.
func (r *recent) forget(key types.NamespacedName, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = slices.DeleteFunc(r.kept, func(object sized) bool {
		return client.ObjectKeyFromObject(object) == key && object.GetResourceVersion() != version
	})
}
