package apply

import (
	"cmp"
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxLooks is how often a contested child is restored without a delay.
	maxLooks = 200
	// lookEvery bounds the cost of a client that fights the operator over a child.
	lookEvery = 10 * time.Second
)

// Memory is what this process remembers of each owner between reconciles. It is lost with the
// process: the next one compares every child once. The zero value is empty.
type Memory struct {
	mu     sync.Mutex
	owners map[types.NamespacedName]*Remembered
}

// Remembered is the memory of one owner. Another object with the owner's name has its own. The
// exported fields are for the callers of Apply.
type Remembered struct {
	// StatusHash is the hash of the last status that was written, or "".
	StatusHash string
	// Generation is not ready yet, or 0. Seen is the time when it was first seen.
	Generation int64
	Seen       time.Time
	// Bridged is the time when the bridge of a renamed port was written or first seen.
	Bridged time.Time

	// owner is the hash of the UID.
	owner    uint64
	children []look
	// changes has the changes by other clients, by child. It is nil if there were none.
	changes map[uint64]*changes
	// confirmed is true if this process has compared the owner in the cache with the stored owner.
	confirmed bool
}

// look is the result of the last comparison of a child: the hash of its UID, and the fingerprints of
// the child and of its declaration. There is one for each child in the cluster, so it is small and
// has no pointers.
type look struct {
	child, stored, declared uint64
	match                   match
}

func (l look) isOf(cached client.Object) bool {
	return l.stored != unreadable && l.stored == stampOf(cached)
}

type changes struct {
	// looks limits the comparisons.
	looks *rate.Limiter
	// corrections is the number in a row until corrected. manager is that of the other client.
	corrections int
	corrected   time.Time
	manager     string
}

func hashOf(uid types.UID) uint64 { return maphash.String(seed, string(uid)) }

// View calls a function with the memory of the owner with this name and UID. It is empty if nothing
// is remembered. The function must not change it.
func (m *Memory) View(name types.NamespacedName, owner types.UID, view func(*Remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	view(m.of(name, owner))
}

// Update calls a function that changes the memory of an owner.
func (m *Memory) Update(owner client.Object, update func(*Remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(owner)
	known := m.of(key, owner.GetUID())
	update(known)
	if m.owners == nil {
		m.owners = map[types.NamespacedName]*Remembered{}
	}

	m.owners[key] = known
}

// of returns the memory of an owner, or a new one. The caller holds the lock.
func (m *Memory) of(name types.NamespacedName, owner types.UID) *Remembered {
	if known := m.owners[name]; known != nil && known.owner == hashOf(owner) {
		return known
	}
	return &Remembered{owner: hashOf(owner)}
}

func (m *Memory) find(name types.NamespacedName, owner, child types.UID) (last look, isKnown bool) {
	m.View(name, owner, func(r *Remembered) {
		if i := r.index(hashOf(child)); i >= 0 {
			last, isKnown = r.children[i], true
		}
	})
	return last, isKnown
}

func (r *Remembered) note(last look) {
	if i := r.index(last.child); i >= 0 {
		r.children[i] = last
	} else {
		r.children = append(r.children, last)
	}
}

// spend takes a comparison of a contested child, or returns the time until the next one.
func (r *Remembered) spend(child types.UID, now time.Time) time.Duration {
	hash := hashOf(child)
	if r.index(hash) < 0 {
		return 0
	}
	if r.changes == nil {
		r.changes = map[uint64]*changes{}
	}
	if r.changes[hash] == nil {
		r.changes[hash] = &changes{looks: rate.NewLimiter(rate.Every(lookEvery), maxLooks)}
	}

	reservation := r.changes[hash].looks.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}

	return wait
}

func (r *Remembered) keep(children []*candidate) {
	if len(r.children) <= len(children) {
		return
	}
	r.children = slices.DeleteFunc(r.children, func(l look) bool {
		return !slices.ContainsFunc(children, func(child *candidate) bool { return hashOf(child.uid) == l.child })
	})
	maps.DeleteFunc(r.changes, func(child uint64, _ *changes) bool { return r.index(child) < 0 })
}

func (r *Remembered) index(child uint64) int {
	return slices.IndexFunc(r.children, func(l look) bool { return l.child == child })
}

const (
	// contestedAfter is the number of consecutive corrections after which a child is contested. A
	// user who tries something corrects it fewer times.
	contestedAfter = 5
	// contestEnds is the time after the last correction until a child is no longer contested. Other
	// controllers that restore their own declaration do so every few minutes.
	contestEnds = 15 * time.Minute
)

// Contested is a child that another client keeps changing, and that Apply restores each time. Apply
// has restored it at least five times, each time less than 15 minutes after the time before.
type Contested struct {
	// Child is the declared child.
	Child client.Object
	// Manager is the field manager of the other client, or "" if it is unknown.
	Manager string
	// Left is the time until the child is no longer contested, unless it is changed again.
	Left time.Duration
}

// corrected counts a correction. The first manager stays, so that two do not alternate.
func (r *Remembered) corrected(child types.UID, manager string, now time.Time) {
	known := r.changes[hashOf(child)]
	if known == nil {
		return
	}
	if now.Sub(known.corrected) >= contestEnds {
		known.corrections, known.manager = 0, ""
	}

	known.corrections, known.corrected = known.corrections+1, now
	known.manager = cmp.Or(known.manager, strings.Clone(manager))
}

// contest returns the other manager, and the time until it is forgotten, or 0 if there is none.
func (r *Remembered) contest(child types.UID, now time.Time) (manager string, left time.Duration) {
	known := r.changes[hashOf(child)]
	if known == nil || known.corrections < contestedAfter {
		return "", 0
	}
	return known.manager, max(known.corrected.Add(contestEnds).Sub(now), 0)
}

// rivalOf returns the field manager of the client that changed the fields that a patch restores. If
// no other manager has one of these fields, for example because it has removed them, it returns the
// last manager that wrote the object, or "" if there is none.
func (a *Applier) rivalOf(live client.Object, patch map[string]any) string {
	var rival metav1.ManagedFieldsEntry
	hasField := false
	for _, entry := range live.GetManagedFields() {
		var fields map[string]any
		if entry.Manager == string(a.FieldOwner) || entry.Subresource == "status" ||
			json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}

		has := overlaps(fields, patch)
		if has && !hasField || has == hasField && !entry.Time.Before(rival.Time) {
			rival, hasField = entry, has
		}
	}

	return rival.Manager
}

// overlaps reports whether a manager has one of the fields of a patch. A list counts as one field.
func overlaps(fields, patch map[string]any) bool {
	for key, value := range patch {
		field, has := fields["f:"+key]
		innerFields, _ := field.(map[string]any)
		inner, isObject := value.(map[string]any)
		if has && (!isObject || len(innerFields) == 0 || overlaps(innerFields, inner)) {
			return true
		}
	}
	return false
}
