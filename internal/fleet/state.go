package fleet

import (
	"cmp"
	"strings"
	"time"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/types"
)

const degree = 32

// State is the state of a fleet rollout. Its sums and orders follow each instance that
// moves, so that a decision visits only the namespace that it returns, and CanaryNamespaces.
type State struct {
	// All counts instances with replicas. Unseen counts objects that were not reconciled yet.
	All, Unseen int
	// Namespaces has the namespaces with instances that are not Outside. Only set changes it.
	Namespaces map[string]Counts
	// Sum is the sum of the counts of all namespaces.
	Sum Counts

	// parts, going, and failing count the namespaces that take part, are not stuck, and fail.
	parts, going, failing int
	// rolling has the namespaces that hold slots, and ready has those that can start an instance.
	rolling, ready *btree.BTreeG[load]
}

type load struct {
	rolling   int
	namespace string
}

func (l load) before(other load) bool {
	return cmp.Or(cmp.Compare(l.rolling, other.rolling), strings.Compare(l.namespace, other.namespace)) < 0
}

func newState() State {
	return State{
		Namespaces: map[string]Counts{},
		rolling:    btree.NewG(degree, load.before), ready: btree.NewG(degree, load.before),
	}
}

func (s *State) set(namespace string, counts Counts) {
	if before, found := s.Namespaces[namespace]; found {
		s.index(namespace, before, -1)
		delete(s.Namespaces, namespace)
	}
	if counts != (Counts{}) {
		s.index(namespace, counts, 1)
		s.Namespaces[namespace] = counts
	}
}

func (s *State) index(namespace string, counts Counts, step int) {
	s.Sum.plus(counts, step)
	if counts.takesPart() {
		s.parts += step
	}
	if !counts.stuck() {
		s.going += step
	}
	if counts[Failed] > 0 {
		s.failing += step
	}

	key := load{counts[Rolling], namespace}
	if counts[Rolling] > 0 {
		put(s.rolling, key, step)
	}
	if counts.next() != Outside {
		put(s.ready, key, step)
	}
}

// held returns the number of slots that are not free. A namespace holds at most limit slots,
// however many instances it has started without a slot. Only one can exceed the limit, which is at
// least all slots but one.
func (s *State) held(limit int) int {
	most, _ := s.rolling.Max()
	return min(most.rolling, limit) + s.Sum[Rolling] - most.rolling
}

func put[K any](tree *btree.BTreeG[K], key K, step int) {
	if step < 0 {
		tree.Delete(key)
	} else {
		tree.ReplaceOrInsert(key)
	}
}

// order has the instances whose places count.
type order struct{ *btree.BTreeG[entry] }

type entry struct {
	place Place
	// since is when the instance started if it is Rolling, and zero otherwise.
	since  time.Time
	object types.NamespacedName
}

// before orders instances by place, with a slot by start, and others by name.
func (e entry) before(other entry) bool {
	return cmp.Or(cmp.Compare(e.place, other.place), e.since.Compare(other.since),
		strings.Compare(e.object.Namespace, other.object.Namespace), strings.Compare(e.object.Name, other.object.Name)) < 0
}

func (o order) first(namespace string, place Place) (first types.NamespacedName, exists bool) {
	o.AscendGreaterOrEqual(entry{place: place, object: types.NamespacedName{Namespace: namespace}}, func(e entry) bool {
		if exists = e.place == place && e.object.Namespace == namespace; exists {
			first = e.object
		}
		return false
	})
	return first, exists
}

func (o order) failed() (objects []types.NamespacedName) {
	o.AscendRange(entry{place: Failed}, entry{place: Failed + 1}, func(e entry) bool {
		objects = append(objects, e.object)
		return len(objects) <= maxNamed
	})
	return objects
}

func (o order) expired(now time.Time) (overdue []types.NamespacedName) {
	o.AscendRange(entry{place: Rolling}, entry{place: Rolling + 1}, func(e entry) bool {
		if now.Sub(e.since) < SlotTime {
			return false
		}
		overdue = append(overdue, e.object)
		return true
	})
	return overdue
}
