package serving

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// work takes a turn, which lasts a while, and returns how long it waited.
func work(t *testing.T, turns *Turns, host string, lasts time.Duration) (waited time.Duration) {
	t.Helper()
	began := time.Now()
	end, err := turns.take(t.Context(), host)
	waited = time.Since(began)
	if err != nil {
		t.Errorf("%s has no turn after %s: %v", host, waited, err)
		return waited
	}
	time.Sleep(lasts)
	end()
	end() // the second call does nothing
	return waited
}

// TestLeastUsedFirst verifies that one of the next two turns is that of a client that used little
// time, however many turns of how many other addresses wait.
func TestLeastUsedFirst(t *testing.T) {
	for _, addresses := range []string{"a", "abcdefghij"} {
		t.Run(addresses, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turns, group := NewTurns(), sync.WaitGroup{}
				for i := range 500 {
					group.Go(func() { work(t, turns, string(addresses[i%len(addresses)]), 2*time.Millisecond) })
				}
				for range 20 {
					time.Sleep(23 * time.Millisecond)
					if waited := work(t, turns, "light", 100*time.Microsecond); waited > 2*(2*time.Millisecond+longestPause) {
						t.Errorf("a light client waits for %s", waited)
					}
				}
				group.Wait()
				if len(turns.waiting) > 0 || turns.taken {
					t.Errorf("%d clients still wait, taken: %t", len(turns.waiting), turns.taken)
				}
			})
		})
	}
}

// TestTurnsShareTime verifies that two addresses get the same time, although the turns of one are
// three times as long. The turns of an address keep their order, and no two overlap.
func TestTurnsShareTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, group, running := NewTurns(), sync.WaitGroup{}, 0
		used, order := map[string]time.Duration{}, map[string][]int{}
		stopped, stop := context.WithTimeout(t.Context(), 4*time.Second)
		defer stop()
		for host, lasts := range map[string]time.Duration{"short": time.Millisecond, "long": 3 * time.Millisecond} {
			for i := range 20 {
				group.Go(func() {
					time.Sleep(time.Duration(i) * time.Microsecond) // they start in order
					for stopped.Err() == nil {
						end, err := turns.take(t.Context(), host)
						if err != nil {
							t.Error(err)
							return
						}
						if running++; running > 1 {
							t.Errorf("%d turns overlap", running)
						}
						used[host] += lasts
						order[host] = append(order[host], i)
						time.Sleep(lasts)
						running--
						end()
					}
				})
			}
		}
		group.Wait()
		if share := used["short"].Seconds() / (used["short"] + used["long"]).Seconds(); share < 0.45 || share > 0.55 {
			t.Errorf("short turns took %s and long ones %s", used["short"], used["long"])
		}
		for host, got := range order {
			for i := range got[:len(got)-20] {
				if got[i] != got[i+20] {
					t.Fatalf("the order of %s changes: %v", host, slices.Concat(got[i:i+20], []int{got[i+20]}))
				}
			}
		}
	})
}

// TestBusyClientsAlternate verifies that a client that uses more than its share waits for at most
// roundEvery turns of each other client with as much work, also if it used much time before and
// they did not, and for three turns of each after they have used their credit.
func TestBusyClientsAlternate(t *testing.T) {
	const lasts, others = 2 * time.Millisecond, 10
	synctest.Test(t, func(t *testing.T) {
		turns, group := NewTurns(), sync.WaitGroup{}
		for i := range others {
			work(t, turns, string(rune('a'+i)), lasts)
		}
		for range 500 {
			work(t, turns, "busy", lasts)
		}
		stopped, stop := context.WithTimeout(t.Context(), 3*others*credit+2*time.Second)
		defer stop()
		for i := range others * 20 {
			group.Go(func() {
				for stopped.Err() == nil {
					work(t, turns, string(rune('a'+i%others)), lasts)
				}
			})
		}
		began := time.Now()
		for stopped.Err() == nil {
			rounds := time.Duration(3)
			if time.Since(began) < 3*others*credit {
				rounds = roundEvery
			}
			if waited := work(t, turns, "busy", lasts); waited > rounds*(others+1)*(lasts+longestPause) {
				t.Errorf("a busy client waits for %s", waited)
			}
		}
		group.Wait()
	})
}

// TestLongTurnsPass verifies that a turn that is stuck blocks no other for longer than longestTurn,
// and that its client has used that time.
func TestLongTurnsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, stuck := NewTurns(), make(chan struct{})
		end, err := turns.take(t.Context(), "stuck")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-stuck
			end()
		}()
		waited := make(chan time.Duration, 1)
		go func() { waited <- work(t, turns, "other", 30*time.Millisecond) }()
		if got := <-waited; got != longestTurn {
			t.Errorf("the next turn starts after %s", got)
		}
		if used := getOrAdd(turns.clients, "stuck", &client{}).tag; used < longestTurn*99/100 {
			t.Errorf("the stuck turn has used %s", used)
		}
		close(stuck)
		synctest.Wait()
		if turns.taken {
			t.Error("the end of the stuck turn left a turn that nobody has")
		}
	})
}

// TestWaitersLeave verifies that a client that gives up leaves no turn, also if its turn starts at
// the same moment.
func TestWaitersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		turns.taken = true // a turn without end
		gone, leave := context.WithCancel(t.Context())
		results := make(chan error, 2)
		began := time.Now()
		for _, ctx := range []context.Context{gone, t.Context()} {
			go func() {
				_, err := turns.take(ctx, "a")
				results <- err
			}()
		}
		synctest.Wait()
		leave()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("want that it is canceled, got %v", err)
		}
		if err := <-results; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != waitForTurn {
			t.Errorf("want that it waits for %s, got %v after %s", waitForTurn, err, time.Since(began))
		}
		if len(turns.waiting) > 0 {
			t.Error("somebody still waits")
		}
		for range 200 { // either case of the select can win
			gone, leave := context.WithCancel(t.Context())
			go func() {
				if end, err := turns.take(gone, "a"); err == nil {
					end()
				}
			}()
			synctest.Wait()
			turns.mu.Lock()
			leave()
			turns.next()
			turns.mu.Unlock()
			synctest.Wait()
			if turns.taken {
				t.Fatal("a client that has left has the turn")
			}
			turns.taken = true
		}
	})
}

// TestPauses verifies that turns follow each other immediately while the clients use little time.
// After that, a pause as long as the turns follows, in which no turn starts.
func TestPauses(t *testing.T) {
	const lasts = 500 * time.Microsecond
	synctest.Test(t, func(t *testing.T) {
		turns, began := NewTurns(), time.Now()
		for range unpaced / lasts {
			work(t, turns, "a", lasts)
		}
		if took := time.Since(began); took != unpaced {
			t.Errorf("turns of %s took %s", unpaced, took)
		}
		for range 1000 {
			work(t, turns, "a", lasts) // the usage has decayed meanwhile
		}
		var paused time.Duration
		for range 1000 {
			switch waited := work(t, turns, "a", lasts); {
			case waited > 0 && waited < shortestPause || waited > longestPause:
				t.Fatalf("a pause of %s", waited)
			default:
				paused += waited
			}
		}
		if paused < 490*time.Millisecond || paused > 510*time.Millisecond {
			t.Errorf("the pauses between turns of %s took %s", 1000*lasts, paused)
		}
		time.Sleep(5 * usageDecay)
		began = time.Now()
		for range 100 {
			work(t, turns, "a", lasts)
		}
		if took := time.Since(began); took != 100*lasts {
			t.Errorf("after a quiet time, turns of %s took %s", 100*lasts, took)
		}
	})
}

// TestRequestsTakeTurns verifies that a request waits for its turn, and is refused if it gets no
// turn in time.
func TestRequestsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, other := NewTurns(), time.Duration(0)
		handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/waits" {
				EndTurn(r.Context())
			}
			other = work(t, turns, "other", 0)
		})
		ask := func(path string) *httptest.ResponseRecorder {
			recorder := httptest.NewRecorder()
			turns.serve(handler, recorder, httptest.NewRequest(http.MethodGet, path, nil))
			return recorder
		}
		if ask("/computes"); other != longestTurn {
			t.Errorf("another turn starts %s after that of a request", other)
		}
		if ask("/waits"); other != 0 {
			t.Errorf("another turn starts %s after that of a request has ended", other)
		}
		turns.taken = true
		began := time.Now()
		answer := ask("/")
		if answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" || time.Since(began) != waitForTurn {
			t.Errorf("answered with %d after %s", answer.Code, time.Since(began))
		}
	})
}

// TestWaitingHandlersHaveNoTurn verifies that the handlers of metrics and probes have no turn while
// they wait: for the API server, or for a handshake with the operator's own port, which needs a
// turn.
func TestWaitingHandlersHaveNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, waited := NewTurns(), []time.Duration(nil)
		wait := func() { waited = append(waited, work(t, turns, "127.0.0.1", 0)) }
		check := func(*http.Request) error {
			wait()
			return nil
		}
		metrics, err := NewMetrics(func(next http.Handler) (http.Handler, error) {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				wait()
				next.ServeHTTP(w, r)
			}), nil
		}, http.HandlerFunc(nobody))
		if err != nil {
			t.Fatal(err)
		}
		probes := NewProbes(nil, map[string]healthz.Checker{"webhooks": Cached(check)})
		for path, handler := range map[string]http.Handler{"/metrics": metrics, "/readyz": probes} {
			recorder := httptest.NewRecorder()
			turns.serve(handler, recorder, httptest.NewRequest(http.MethodGet, path, nil))
			if recorder.Code != http.StatusOK {
				t.Errorf("%s is answered with %d", path, recorder.Code)
			}
		}
		if !slices.Equal(waited, []time.Duration{0, 0}) {
			t.Errorf("they waited for %v", waited)
		}
	})
}
