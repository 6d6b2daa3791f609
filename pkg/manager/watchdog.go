package manager

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Watchdog lets the liveness probe fail, so that the kubelet restarts the operator, if a reconcile
// is stuck, or if a leader runs no reconcile although objects wait. For the reasons, see
// docs/adr/0018-a-fleet-that-is-not-reconciled.md.
type Watchdog struct {
	limit, idleLimit time.Duration
	elected          <-chan struct{}
	waiting          func() int

	mu sync.Mutex
	// ended is the time of the last end of a reconcile, or at which this replica started to lead.
	ended time.Time
	// running has the start of each running reconcile, of which an object has one at a time.
	running map[reconcile.Request]time.Time
}

// NewWatchdog returns a watchdog for which a reconcile is stuck after the limit. An elected replica
// is stuck if no reconcile has ended within the idle limit, not even with an error, while objects
// wait. The idle limit must be longer than the longest back-off.
func NewWatchdog(limit, idleLimit time.Duration, elected <-chan struct{}, waiting func() int) *Watchdog {
	return &Watchdog{
		limit: limit, idleLimit: idleLimit, elected: elected, waiting: waiting, running: map[reconcile.Request]time.Time{},
	}
}

// Watch returns a reconciler that reports to the watchdog.
func (w *Watchdog) Watch(inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		w.mu.Lock()
		w.running[request] = time.Now()
		w.mu.Unlock()

		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.running, request)
			w.ended = time.Now()
		}()

		return inner.Reconcile(ctx, request)
	})
}

// Check is a healthz.Checker. Its error names the stuck object, or the number of waiting objects.
func (w *Watchdog) Check(*http.Request) error {
	w.mu.Lock()
	for request, since := range w.running {
		if age := time.Since(since); age > w.limit {
			w.mu.Unlock()
			return fmt.Errorf("the reconcile of %s has not ended for %s", request, age.Round(time.Second))
		}
	}

	idle := w.idle()
	w.mu.Unlock()

	if idle <= w.idleLimit {
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
	default:
		return 0
	}
}
