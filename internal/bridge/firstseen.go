package bridge

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// firstSeen measures how long this process has known objects, by its monotonic clock. Timestamps of
// objects are from the clock of the API server, which may be ahead of the operator's. The
// difference would extend the wait for an age.
type firstSeen struct {
	mu     sync.Mutex
	times  map[types.NamespacedName]time.Time
	pruned time.Time
}

// seenLimit is how long an object is remembered. It is far longer than any age that matters.
const seenLimit = 10 * time.Minute

// age returns how long an object has been known. The age of an unknown object is 0.
func (f *firstSeen) age(object types.NamespacedName) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, known := f.times[object]
	if !known {
		f.put(object)
		return 0
	}
	return time.Since(at)
}

// created sets the age of an object to 0, even if an earlier object with its name is known.
func (f *firstSeen) created(object types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(object)
}

// forget drops an object that is deleted.
func (f *firstSeen) forget(object types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.times, object)
}

// put must be called with the lock. Once per seenLimit it drops old objects.
func (f *firstSeen) put(object types.NamespacedName) {
	now := time.Now()
	if f.times == nil {
		f.times = map[types.NamespacedName]time.Time{}
	}
	if now.Sub(f.pruned) >= seenLimit {
		for known, at := range f.times {
			if now.Sub(at) >= seenLimit {
				delete(f.times, known)
			}
		}
		f.pruned = now
	}
	f.times[object] = now
}
