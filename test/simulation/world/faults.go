package world

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/example/nginx-operator/test/simulation/storage"
)

// viewTime is the time during which a process that started on an older view sees nothing newer.
const viewTime = 5 * time.Second

// Faults are failures between the operator and the API server. The zero value has none.
type Faults struct {
	// Refuse has the error for creates and patches of a kind.
	Refuse map[*storage.Resource]error
	// Conflict, Timeout, and Lost are the probabilities that a write fails: with a conflict,
	// without an effect, and with an effect.
	Conflict, Timeout, Lost float64
	// Crash is the probability that the operator ends before a write, and the probability that it
	// ends after a write. Both are drawn separately.
	Crash float64
	// OldView makes a process that starts after a crash see the state before the write.
	OldView bool
	// Lag is the delay of the events of a kind.
	Lag map[*storage.Resource]time.Duration
	// Relist is the probability that a watch ends instead of delivering an event, so that the
	// operator lists.
	Relist float64
}

type kill int

const (
	killBefore kill = iota + 1
	killAfter
)

// fault is the fault of one request. The zero value is no fault.
type fault struct {
	err   error
	after bool
	kill  kill
	// chance is true if a retry may succeed.
	chance bool
}

// decide returns the fault of a request, and the resource version before the request.
func (w *World) decide(request *storage.Request) (before int64, found fault) {
	before = w.Store.Revision()
	if !request.IsWrite() {
		return before, fault{}
	}
	if err := w.Faults.Refuse[request.Resource]; err != nil && request.Verb != "delete" && request.Subresource == "" {
		return before, fault{err: err}
	}
	hit := func(probability float64) bool { return probability > 0 && w.random.Float64() < probability }
	group := request.Resource.GroupResource()
	switch {
	case request.Verb != "delete" && hit(w.Faults.Conflict): // a deletion conflicts only if the object is another one
		return before, fault{err: apierrors.NewConflict(group, request.Name, errors.New("somebody else wrote")), chance: true}
	case hit(w.Faults.Timeout):
		return before, fault{err: apierrors.NewServerTimeout(group, request.Verb, 0), chance: true}
	case hit(w.Faults.Lost):
		return before, fault{err: apierrors.NewServerTimeout(group, request.Verb, 0), after: true, chance: true}
	case hit(w.Faults.Crash):
		return before, fault{kill: killBefore}
	}
	// hit draws again, so that a write without a crash before it has the same probability of a
	// crash after it.
	if hit(w.Faults.Crash) {
		return before, fault{kill: killAfter}
	}
	return before, fault{}
}

// crash ends the operator. The next Run starts another process. If OldView is set, the process sees
// the given resource version.
func (w *World) crash(before int64) {
	w.Stop()
	w.crashView = -1
	if w.Faults.OldView {
		w.crashView = before
	}
}

// crashed starts the operator if it has crashed or has ended its process, and reports whether it
// did.
func (w *World) crashed() bool {
	if w.operator.hasEnded() {
		w.trace("the operator has ended its process")
		w.operator, w.crashView = nil, -1
	}
	if w.crashView == 0 {
		return false
	}
	view := max(w.crashView, 0)
	w.crashView = 0
	w.Start(view)
	return true
}
