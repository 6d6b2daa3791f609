package world

import (
	"time"

	"github.com/example/nginx-operator/test/simulation/storage"
)

// deliver delivers one event, and reports whether there was one.
func (w *World) deliver() bool {
	if w.operator == nil {
		return false
	}
	open := w.operator.watches[:0]
	for _, watch := range w.operator.watches {
		if watch.Open() {
			open = append(open, watch)
		}
	}
	w.operator.watches = open
	for _, watch := range open {
		if due, found := w.due(watch); found && !due.After(time.Now()) {
			if w.Faults.Relist > 0 && w.random.Float64() < w.Faults.Relist {
				w.trace("relist %s", watch.Resource.Name())
				watch.Expire()
				return true
			}
			if w.TraceAll {
				w.trace("deliver %s", watch)
			}
			return watch.Deliver()
		}
	}
	return false
}

// due returns the time at which the next event of a watch must be delivered, or false if there is
// no event.
func (w *World) due(watch *storage.Watch) (time.Time, bool) {
	written, found := watch.Oldest()
	if !found {
		return time.Time{}, false
	}
	due := written.Add(w.Faults.Lag[watch.Resource])
	if w.seesOld(watch.Resource) {
		if sees := w.operator.started.Add(viewTime); sees.After(due) {
			due = sees
		}
	}
	return due, true
}
