package manager

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestWatchdogFindsALeaderThatDoesNothing verifies that a replica is stuck only if it leads,
// objects wait, and no reconcile ends. Each of these conditions alone is normal.
func TestWatchdogFindsALeaderThatDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting, elected := 0, make(chan struct{})
		watchdog := NewWatchdog(time.Minute, 10*time.Minute, elected, func() int { return waiting })
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

// TestPanicIsTheErrorOfItsObject verifies that a panic in a reconcile becomes the error of its
// object.
func TestPanicIsTheErrorOfItsObject(t *testing.T) {
	options := ControllerOptions()
	options.Reconciler = reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { panic("hostile") })
	c, err := controller.NewTypedUnmanaged("panics", options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reconcile(t.Context(), reconcile.Request{}); err == nil || !strings.Contains(err.Error(), "hostile") {
		t.Errorf("error %v", err)
	}
}

// TestWatchdog verifies that a reconcile is reported as stuck after the limit, and no longer once
// it ends.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watchdog := NewWatchdog(time.Minute, 0, nil, nil)
		failed, done := errors.New("failed"), make(chan error)
		watched := watchdog.Watch(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			time.Sleep(2 * time.Minute)
			return reconcile.Result{}, failed
		}))
		go func() {
			_, err := watched.Reconcile(t.Context(), reconcile.Request{})
			done <- err
		}()

		time.Sleep(time.Minute)
		if err := watchdog.Check(nil); err != nil {
			t.Errorf("within the limit: %v", err)
		}
		time.Sleep(time.Second)
		if watchdog.Check(nil) == nil {
			t.Error("a stuck reconcile was not found")
		}
		if err := <-done; !errors.Is(err, failed) {
			t.Errorf("the error was lost: %v", err)
		}
		if err := watchdog.Check(nil); err != nil {
			t.Errorf("nothing runs any more: %v", err)
		}
	})
}
