package manager

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Watchdog lets the liveness probe fail if a reconcile is stuck, or if a leader runs no reconcile
// although objects wait, so that the kubelet restarts the operator. An operator that waits for the
// API server, for its cache, or for the leader election is not stuck, because a restart would not
// help. For the reasons, see docs/adr/0018-a-fleet-that-is-not-reconciled.md.
type Watchdog struct {
	limit time.Duration
	// idleLimit, elected and waiting are set by WatchQueue.
	idleLimit time.Duration
	elected   <-chan struct{}
	waiting   func() int

	mu sync.Mutex
	// ended is the time at which the last reconcile ended, or at which this replica was first seen
	// to lead.
	ended   time.Time
	next    int
	running map[int]run
}

type run struct {
	request reconcile.Request
	since   time.Time
}

// NewWatchdog returns a watchdog for which a reconcile is stuck if it takes longer than the limit.
func NewWatchdog(limit time.Duration) *Watchdog {
	return &Watchdog{limit: limit, running: map[int]run{}}
}

// Watch returns a reconciler that reports to the watchdog.
func (w *Watchdog) Watch(inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		defer w.end(w.begin(request))
		return inner.Reconcile(ctx, request)
	})
}

// WatchQueue lets the check also fail if this replica leads, objects wait, and no reconcile has
// ended within the limit. A reconcile with an error counts as ended. The limit must be longer than
// the longest back-off.
func (w *Watchdog) WatchQueue(limit time.Duration, elected <-chan struct{}, waiting func() int) {
	w.idleLimit, w.elected, w.waiting = limit, elected, waiting
}

// Check is a healthz.Checker. It fails if a reconcile is stuck, and names its object, or if objects
// wait and no reconcile ends.
func (w *Watchdog) Check(*http.Request) error {
	w.mu.Lock()
	for _, run := range w.running {
		if age := time.Since(run.since); age > w.limit {
			w.mu.Unlock()
			return fmt.Errorf("reconcile of %s has not ended for %s", run.request, age.Round(time.Second))
		}
	}
	idle := w.idle()
	w.mu.Unlock()
	if w.waiting == nil || idle <= w.idleLimit {
		return nil
	}
	if waiting := w.waiting(); waiting > 0 {
		return fmt.Errorf("%d objects wait, and no reconcile has ended for %s", waiting, idle.Round(time.Second))
	}
	return nil
}

// idle returns the time for which this replica has led without the end of a reconcile.
func (w *Watchdog) idle() time.Duration {
	select {
	case <-w.elected:
		if w.ended.IsZero() {
			w.ended = time.Now()
		}
		return time.Since(w.ended)
	default: // not elected, or no channel
		return 0
	}
}

func (w *Watchdog) begin(request reconcile.Request) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	w.running[w.next] = run{request, time.Now()}
	return w.next
}

func (w *Watchdog) end(id int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, id)
	w.ended = time.Now()
}
