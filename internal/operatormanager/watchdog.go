package operatormanager

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/metrics"
)

// Watchdog tells the liveness probe of reconciles that do not come back, and of a leader that makes none though objects wait, so
// that a stuck operator is restarted. One that waits for the API server, for its cache or for the leader election is not stuck: a
// restart would not help. docs/adr/0018-a-fleet-that-is-not-reconciled.md has the reasons.
type Watchdog struct {
	limit time.Duration
	// idleLimit, elected and waiting are set by WatchQueue.
	idleLimit time.Duration
	elected   <-chan struct{}
	waiting   func() int

	mu sync.Mutex
	// ended is when the last reconcile ended, or when this replica was first seen to lead.
	ended   time.Time
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

// WatchQueue lets the check also fail when this replica leads, objects wait, and no reconcile has ended for the limit, not even
// with an error. The limit has to be longer than the longest back-off.
func (w *Watchdog) WatchQueue(limit time.Duration, elected <-chan struct{}, waiting func() int) {
	w.idleLimit, w.elected, w.waiting = limit, elected, waiting
}

// Waiting returns what counts the objects that a reader, which should be the cache, shows to be waiting for a reconcile. It is 0
// while the cache is not filled.
func Waiting(reader client.Reader) func() int {
	return func() int {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		list := &v1alpha2.NginxOperatorList{}
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return 0
		}
		waiting := 0
		for i := range list.Items {
			if metrics.Waits(&list.Items[i]) {
				waiting++
			}
		}
		return waiting
	}
}

// Check is a healthz.Checker that fails while a reconcile is stuck, and names its object, or while none is made.
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

// idle returns for how long this replica has led without the end of a reconcile.
func (w *Watchdog) idle() time.Duration {
	select {
	case <-w.elected:
		if w.ended.IsZero() {
			w.ended = time.Now()
		}
		return time.Since(w.ended)
	default: // also without a channel
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
