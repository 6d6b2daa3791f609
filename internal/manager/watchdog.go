package manager

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Watchdog tells the liveness probe of reconciles that do not come back, so that a stuck operator is restarted. One
// that waits for the API server or for the leader election is not stuck.
type Watchdog struct {
	limit time.Duration

	mu      sync.Mutex
	next    int
	running map[int]run
}

type run struct {
	request reconcile.Request
	since   time.Time
}

// NewWatchdog returns a watchdog that finds a reconcile stuck when it runs for longer than the limit.
func NewWatchdog(limit time.Duration) *Watchdog {
	return &Watchdog{limit: limit, running: map[int]run{}}
}

// Watch returns the reconciler under the watch of the watchdog.
func (w *Watchdog) Watch(inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		defer w.end(w.begin(request))
		return inner.Reconcile(ctx, request)
	})
}

// Check is a healthz.Checker that fails while a reconcile is stuck, and names its object.
func (w *Watchdog) Check(*http.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, run := range w.running {
		if age := time.Since(run.since); age > w.limit {
			return fmt.Errorf("reconcile of %s has not ended for %s", run.request, age.Round(time.Second))
		}
	}
	return nil
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
}
