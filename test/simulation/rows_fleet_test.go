package simulation

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/example/nginx-operator/test/simulation/check"
	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

// fleetOf creates three instances, and sets the next release, which is not started yet.
func fleetOf(t *testing.T, w *world.World) {
	t.Helper()
	for _, name := range world.Names {
		serve(t, w, newInstance(name))
	}
	w.Run(time.Minute)
	w.Release.Image = "registry.example/nginx:2"
}

// report fails the test for each violated invariant of the current moment.
func report(t *testing.T, w *world.World) {
	t.Helper()
	for _, problem := range check.Moment(w.State()) {
		t.Error(problem)
	}
}

// TestRow3UnschedulableRolloutIsReported reproduces row 3: a rollout that was rolled back because
// no node accepted its Pods is reported as the reason why other instances wait.
func TestRow3UnschedulableRolloutIsReported(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		fleetOf(t, w)
		w.SetNodes(false)
		w.Restart(0)
		w.Run(4 * time.Minute)
		w.SetNodes(true)
		w.Run(time.Minute)
		report(t, w)
	})
}

// TestRow11DeletedWhileTheReporterLists reproduces row 11: an instance that is deleted while the
// reporter lists does not stop the rollout.
func TestRow11DeletedWhileTheReporterLists(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		fleetOf(t, w)
		w.ListDelay = 10 * time.Second
		w.Restart(0)
		w.Run(time.Second)
		w.Remove(storage.NginxOperators, "a")
		w.Run(5 * time.Minute)
		for _, name := range []string{"b", "c"} {
			if image := w.Deployment(name).Spec.Template.Spec.Containers[0].Image; image != w.Release.Image {
				t.Errorf("%s still has image %s", name, image)
			}
		}
	})
}

// TestUnbounded verifies that Unbounded finds a fleet that rolls at once, and accepts a fleet that
// rolls one by one.
func TestUnbounded(t *testing.T) {
	for slots, wantFound := range map[int32]bool{1: false, 3: true} {
		inWorld(t, func(t *testing.T, w *world.World) {
			fleetOf(t, w)
			w.Released = append(w.Released, time.Now())
			w.Release.Fleet.MaxUnavailable = intstr.FromInt32(slots)
			w.Restart(0)
			w.Run(time.Minute)
			w.Release.Fleet = policy
			if found := w.Unbounded(); len(found) > 0 != wantFound {
				t.Errorf("with %d slots, found %v", slots, found)
			}
		})
	}
}
