package apply

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxLooks is how often a child that somebody changes is looked at, and restored, without delay.
	maxLooks = 200
	// lookEvery is how long it takes until one more look is earned. It bounds what somebody costs who fights the operator over a child.
	lookEvery = 10 * time.Second
)

// memory is what is known of the children of each owner from having looked at all of them. It is lost with the process, and then
// every child is looked at once. The zero value is empty.
type memory struct {
	mu     sync.Mutex
	owners map[types.NamespacedName]family
}

// family is what is known of one owner's children. Another object of the owner's name has others.
type family struct {
	owner    types.UID
	children []look
}

// look is what the last look at a child came to. There is one for every child in the cluster.
type look struct {
	// child stands for its UID.
	child uint64
	// stored and declared are the fingerprints of the child and of its declaration.
	stored, declared uint64
	// asDeclared reports whether the child was as declared.
	asDeclared bool
	// changes are those by others, nil where there were none.
	changes *changes
}

// isOf reports whether the child, as the cache has it, is what the look was at.
func (l look) isOf(cached client.Object) bool {
	return l.stored != unreadable && l.stored == stampOf(cached)
}

// changes are how many looks at changes by others were spent, which are earned back since.
type changes struct {
	spent int
	since time.Time
}

// childOf returns what stands for the child of a UID.
func childOf(uid types.UID) uint64 { return maphash.String(seed, string(uid)) }

// find returns what is known of a child of the owner that has this name and UID.
func (m *memory) find(name types.NamespacedName, owner, child types.UID) (look, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.owners[name]
	if i := known.index(childOf(child)); i >= 0 && known.owner == owner {
		return known.children[i], true
	}
	return look{}, false
}

// note remembers what a look came to.
func (m *memory) note(owner client.Object, found look) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(owner)
	known := m.owners[key]
	if known.owner != owner.GetUID() {
		known = family{owner: owner.GetUID()}
	}
	if i := known.index(found.child); i >= 0 {
		found.changes = known.children[i].changes
		known.children[i] = found
	} else {
		known.children = append(known.children, found)
	}
	m.set(key, known)
}

// spend takes one of the looks that a child has, because somebody changed it. It returns how long to wait where none is left.
func (m *memory) spend(owner client.Object, child types.UID, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.owners[client.ObjectKeyFromObject(owner)]
	i := known.index(childOf(child))
	if i < 0 {
		return 0
	}
	if known.children[i].changes == nil {
		known.children[i].changes = &changes{since: now}
	}
	found := known.children[i].changes
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

// keep forgets all children of the owner but these.
func (m *memory) keep(owner client.Object, children []types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(owner)
	known, found := m.owners[key]
	if !found || known.owner == owner.GetUID() && len(known.children) <= len(children) {
		return
	}
	known.children = slices.DeleteFunc(known.children, func(l look) bool {
		return !slices.ContainsFunc(children, func(uid types.UID) bool { return childOf(uid) == l.child })
	})
	m.set(key, known)
}

// forget forgets all children of the owner of that name.
func (m *memory) forget(owner types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.owners, owner)
}

// set is called with the lock.
func (m *memory) set(key types.NamespacedName, known family) {
	if m.owners == nil {
		m.owners = map[types.NamespacedName]family{}
	}
	m.owners[key] = known
}

func (f family) index(child uint64) int {
	return slices.IndexFunc(f.children, func(l look) bool { return l.child == child })
}
