package simulation

import (
	"testing"
	"time"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

// TestServedKindsChange verifies that the operator ends its process if the served kinds have
// changed for ten seconds, but not within five minutes after its election, and not after a change
// that was undone.
func TestServedKindsChange(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		exists := func() bool { return len(w.Store.List(storage.HTTPRoutes, "")) == 1 }
		started := w.Started()
		run := func(duration time.Duration, restarts bool) {
			t.Helper()
			w.Run(duration)
			if w.Started().Equal(started) == restarts {
				t.Errorf("the running operator started %s ago, and the one before %s ago", time.Since(w.Started()), time.Since(started))
			}
			started = w.Started()
		}
		serve(t, w, "web", func(*v1alpha2.NginxOperatorSpec) {})
		w.Edit("web", route)
		run(10*time.Minute, false)

		w.Install(storage.HTTPRoutes)
		run(5*time.Second, false)
		w.Uninstall(storage.HTTPRoutes)
		run(time.Minute, false)

		w.Install(storage.HTTPRoutes)
		run(9*time.Second, false)
		run(3*time.Second, true)
		if !w.Until(time.Minute, exists) {
			t.Error("the new process does not create the HTTPRoute")
		}

		for range 2 {
			w.Uninstall(storage.HTTPRoutes)
			run(time.Minute, false)
			w.Install(storage.HTTPRoutes)
			run(time.Minute, false)
		}
		if !exists() {
			t.Error("the process that watches HTTPRoutes does not create the HTTPRoute again")
		}
		run(2*time.Minute, false)
		w.Uninstall(storage.HTTPRoutes)
		run(12*time.Second, true)
		w.Install(storage.HTTPRoutes)
		run(4*time.Minute, false)
		run(time.Minute, true)
		run(10*time.Minute, false)
	})
}
