package operatormanager

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestWatchdogFindsALeaderThatDoesNothing verifies that a replica is stuck only if it leads,
// objects wait, and no reconcile ends. Each of these conditions alone is normal.
func TestWatchdogFindsALeaderThatDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting, elected := 0, make(chan struct{})
		watchdog := NewWatchdog(time.Minute)
		watchdog.WatchQueue(10*time.Minute, elected, func() int { return waiting })
		watched := watchdog.Watch(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}))
		healthy := func(when string, want bool) {
			t.Helper()
			if err := watchdog.Check(nil); (err == nil) != want {
				t.Errorf("%s: %v", when, err)
			}
		}
		waiting = 1
		time.Sleep(time.Hour)
		healthy("a standby", true)
		close(elected)
		healthy("just elected", true)
		time.Sleep(11 * time.Minute)
		healthy("no reconcile since then", false)
		if _, err := watched.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
		healthy("after a reconcile", true)
		time.Sleep(11 * time.Minute)
		healthy("no further one", false)
		waiting = 0
		healthy("without work", true)
	})
}
