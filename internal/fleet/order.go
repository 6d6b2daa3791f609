package fleet

import (
	"cmp"
	"strings"
	"time"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/types"
)

// entry is an instance in the order of places. It is in no order if its failure does not count.
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

// order has the instances that a decision looks for: the waiting, the rolling, and the failed.
type order struct{ *btree.BTreeG[entry] }

func newOrder() order { return order{btree.NewG(degree, entry.before)} }

// put adds an instance, or removes it if step is -1.
func (o order) put(object types.NamespacedName, of member, step int) {
	if of.place == Overdue || of.place == Failed && of.unproven {
		return
	}
	key := entry{place: of.place, object: object}
	if of.place == Rolling {
		key.since = of.since
	}
	put(o.BTreeG, key, step)
}

// first returns the first instance of a namespace that waits in a place.
func (o order) first(namespace string, place Place) (first types.NamespacedName, found bool) {
	o.AscendGreaterOrEqual(entry{place: place, object: types.NamespacedName{Namespace: namespace}}, func(e entry) bool {
		if found = e.place == place && e.object.Namespace == namespace; found {
			first = e.object
		}
		return false
	})
	return first, found
}

// failed returns some failed instances, at most one more than a message names.
func (o order) failed() (objects []types.NamespacedName) {
	o.AscendRange(entry{place: Failed}, entry{place: Failed + 1}, func(e entry) bool {
		objects = append(objects, e.object)
		return len(objects) <= maxNamed
	})
	return objects
}

// expired returns the instances that have held their slots for SlotTime, and when the next slot
// expires, or zero if no other instance holds a slot.
func (o order) expired(now time.Time) (overdue []types.NamespacedName, next time.Time) {
	o.AscendRange(entry{place: Rolling}, entry{place: Rolling + 1}, func(e entry) bool {
		if due := e.since.Add(SlotTime); due.After(now) {
			next = due
			return false
		}
		overdue = append(overdue, e.object)
		return true
	})
	return overdue, next
}
