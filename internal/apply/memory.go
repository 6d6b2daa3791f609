package apply

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxLooks is the number of times that a child is compared and restored without a delay while
	// another client keeps changing it.
	maxLooks = 200
	// lookEvery is the time until one more comparison is allowed. It bounds the cost of a client
	// that fights the operator over a child.
	lookEvery = 10 * time.Second
)

// memory has the results of the comparisons of each owner's children. It is lost with the process;
// the next process compares every child once. The zero value is empty.
type memory struct {
	mu     sync.Mutex
	owners map[types.NamespacedName]family
}

// family has the known children of one owner. Another object with the owner's name has its own
// children.
type family struct {
	// owner is the hash of the UID.
	owner    uint64
	children []look
	// changes has the changes by other clients, by child. It is nil if there were none.
	changes map[uint64]*changes
	// confirmed is true if this process has compared the owner in the cache with the stored owner.
	confirmed bool
}

// look is the result of the last comparison of a child. There is one for each child in the cluster,
// so it is small and has no pointers.
type look struct {
	// child is the hash of the UID.
	child uint64
	// stored and declared are the fingerprints of the child and of its declaration.
	stored, declared uint64
	// match is the relation of both.
	match match
}

// isOf reports whether the child in the cache is unchanged since the comparison.
func (l look) isOf(cached client.Object) bool {
	return l.stored != unreadable && l.stored == stampOf(cached)
}

// changes has the number of spent comparisons, and the time since which some of them are earned
// back. It also has the number of consecutive corrections, the time of the last one, and the field
// manager of the other client.
type changes struct {
	spent       int
	since       time.Time
	corrections int
	corrected   time.Time
	manager     string
}

// hashOf returns the hash of a UID.
func hashOf(uid types.UID) uint64 { return maphash.String(seed, string(uid)) }

// find returns the last comparison of the child with this UID, if the owner has this name and UID.
func (m *memory) find(name types.NamespacedName, owner, child types.UID) (look, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.familyOf(name, owner)
	if i := known.index(hashOf(child)); i >= 0 {
		return known.children[i], true
	}
	return look{}, false
}

// note stores the result of a comparison.
func (m *memory) note(owner client.Object, found look) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(owner)
	known := m.familyOf(key, owner.GetUID())
	if i := known.index(found.child); i >= 0 {
		known.children[i] = found
	} else {
		known.children = append(known.children, found)
	}
	m.set(key, known)
}

// isConfirmed reports whether Confirm has succeeded for the owner with this name and UID.
func (m *memory) isConfirmed(name types.NamespacedName, owner types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.familyOf(name, owner).confirmed
}

// confirm stores that Confirm has succeeded.
func (m *memory) confirm(name types.NamespacedName, owner types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.familyOf(name, owner)
	known.confirmed = true
	m.set(name, known)
}

// spend takes one of the comparisons of a child that another client has changed. It returns the
// time to wait if none is left.
func (m *memory) spend(owner client.Object, child types.UID, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, hash := client.ObjectKeyFromObject(owner), hashOf(child)
	known := m.owners[key]
	if known.index(hash) < 0 {
		return 0
	}
	found := known.changes[hash]
	if found == nil {
		found = &changes{since: now}
		if known.changes == nil {
			known.changes = map[uint64]*changes{}
		}
		known.changes[hash] = found
		m.set(key, known)
	}
	earned := min(int(now.Sub(found.since)/lookEvery), found.spent)
	found.spent -= earned
	found.since = found.since.Add(time.Duration(earned) * lookEvery)
	if found.spent == 0 {
		found.since = now
	}
	if found.spent >= maxLooks {
		return found.since.Add(lookEvery).Sub(now)
	}
	found.spent++
	return 0
}

// keep removes all children of the owner except these.
func (m *memory) keep(owner client.Object, children []types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(owner)
	known, found := m.owners[key]
	if !found || known.owner == hashOf(owner.GetUID()) && len(known.children) <= len(children) {
		return
	}
	known.children = slices.DeleteFunc(known.children, func(l look) bool {
		return !slices.ContainsFunc(children, func(uid types.UID) bool { return hashOf(uid) == l.child })
	})
	maps.DeleteFunc(known.changes, func(child uint64, _ *changes) bool { return known.index(child) < 0 })
	m.set(key, known)
}

// forget removes all children of the owner with this name.
func (m *memory) forget(owner types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.owners, owner)
}

// familyOf returns the children of the owner with this name and UID, or none. The caller holds the lock.
func (m *memory) familyOf(name types.NamespacedName, owner types.UID) family {
	known, hash := m.owners[name], hashOf(owner)
	if known.owner != hash {
		return family{owner: hash}
	}
	return known
}

// set stores the children of an owner. The caller holds the lock.
func (m *memory) set(key types.NamespacedName, known family) {
	if m.owners == nil {
		m.owners = map[types.NamespacedName]family{}
	}
	m.owners[key] = known
}

func (f family) index(child uint64) int {
	return slices.IndexFunc(f.children, func(l look) bool { return l.child == child })
}
