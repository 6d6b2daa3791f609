package fleet

import (
	"cmp"
	"strings"
	"time"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/types"
)

// degree is the degree of the B-trees.
const degree = 32

// State is the state of a fleet rollout. Its sums and orders follow each instance that
// moves, so that a decision visits only the namespace that it returns, and CanaryNamespaces.
type State struct {
	// All is the number of instances with replicas. Unseen is the number of objects that were not
	// reconciled since this process started.
	All, Unseen int
	// Namespaces has the namespaces with instances in a place other than Outside. Only set changes
	// it.
	Namespaces map[string]Counts
	// Sum is the sum of the counts of all namespaces.
	Sum Counts

	// parts, going, and failing are the numbers of namespaces that take part, that are not stuck,
	// and that have failures.
	parts, going, failing int
	// rolling has the namespaces that hold slots, and ready has those that can start an instance.
	rolling, ready *btree.BTreeG[load]
}

// load is the number of slots that a namespace holds.
type load struct {
	rolling   int
	namespace string
}

// before orders namespaces by the slots that they hold, and then by name.
func (l load) before(other load) bool {
	return cmp.Or(cmp.Compare(l.rolling, other.rolling), strings.Compare(l.namespace, other.namespace)) < 0
}

func newState() State {
	return State{
		Namespaces: map[string]Counts{},
		rolling:    btree.NewG(degree, load.before), ready: btree.NewG(degree, load.before),
	}
}

// set changes the counts of a namespace.
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

// index adds a namespace to the sums and orders, or removes it if step is -1.
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

// put adds a key to a tree, or deletes it if step is -1.
func put[K any](tree *btree.BTreeG[K], key K, step int) {
	if step < 0 {
		tree.Delete(key)
	} else {
		tree.ReplaceOrInsert(key)
	}
}

// order has the instances whose places count.
type order struct{ *btree.BTreeG[entry] }

// entry is an instance in the order of places.
type entry struct {
	place Place
	// since is when the instance started if it is Rolling, and zero otherwise.
	since  time.Time
	object types.NamespacedName
}

// before orders instances by place. Instances that hold slots are in the order of their starts, and
// others in the order of their names.
func (e entry) before(other entry) bool {
	return cmp.Or(cmp.Compare(e.place, other.place), e.since.Compare(other.since),
		strings.Compare(e.object.Namespace, other.object.Namespace), strings.Compare(e.object.Name, other.object.Name)) < 0
}

// first returns the first instance of a namespace that waits in a place.
func (o order) first(namespace string, place Place) (first types.NamespacedName, exists bool) {
	o.AscendGreaterOrEqual(entry{place: place, object: types.NamespacedName{Namespace: namespace}}, func(e entry) bool {
		if exists = e.place == place && e.object.Namespace == namespace; exists {
			first = e.object
		}
		return false
	})
	return first, exists
}

// failed returns some failed instances, at most one more than a message names.
func (o order) failed() (objects []types.NamespacedName) {
	o.AscendRange(entry{place: Failed}, entry{place: Failed + 1}, func(e entry) bool {
		objects = append(objects, e.object)
		return len(objects) <= maxNamed
	})
	return objects
}

// expired returns the instances that have held their slots for SlotTime.
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
