package serving

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// TestProbesShareChecks verifies that many requests cause at most one check per second, whose
// result answers all requests. If a client disconnects, the check continues for the kubelet.
func TestProbesShareChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checks atomic.Int32
		var healthy atomic.Bool
		check := func(r *http.Request) error {
			checks.Add(1)
			select {
			case <-time.After(100 * time.Millisecond):
				if !healthy.Load() {
					return errors.New("broken")
				}
				return nil
			case <-r.Context().Done():
				return r.Context().Err()
			}
		}
		handler := NewProbes(nil, map[string]healthz.Checker{"webhooks": Cached(check)})
		probe := func(ctx context.Context) int {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
			return recorder.Code
		}

		stranger, leave := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for range 1000 {
			group.Go(func() { probe(stranger) })
		}
		time.Sleep(10 * time.Millisecond)
		leave()
		healthy.Store(true)
		began := time.Now()
		if code := probe(t.Context()); code != http.StatusOK || time.Since(began) > 100*time.Millisecond {
			t.Errorf("the kubelet is answered %d after %s", code, time.Since(began))
		}
		group.Wait()
		if n := checks.Load(); n != 1 {
			t.Errorf("%d checks for 1,001 probes", n)
		}

		healthy.Store(false)
		time.Sleep(checkValid)
		if code := probe(t.Context()); code != http.StatusInternalServerError || checks.Load() != 2 {
			t.Errorf("a second later it is answered %d after %d checks", code, checks.Load())
		}
	})
}

// TestProbePaths verifies that the paths equal the paths of controller-runtime.
func TestProbePaths(t *testing.T) {
	broken := func(*http.Request) error { return errors.New("broken") }
	handler := NewProbes(
		map[string]healthz.Checker{"reconcile": Cached(healthz.Ping)},
		map[string]healthz.Checker{"webhooks": Cached(broken), "other": Cached(healthz.Ping)},
	)
	for path, want := range map[string]int{
		"/healthz": 200, "/healthz/": 200, "/healthz/reconcile": 200, "/healthz/none": 404,
		"/readyz": 500, "/readyz/webhooks": 500, "/readyz/other": 200, "/readyz?exclude=webhooks": 200, "/": 404, "/metrics": 404,
	} {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		if recorder.Code != want {
			t.Errorf("%s is answered %d, want %d", path, recorder.Code, want)
		}
	}
}
