package simulation

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/nginx-operator/test/simulation/check"
	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

const (
	// healTime is the time for instances to recover after the faults have ended, without another
	// change. It is shorter than requeue.AfterVerdict, the retry interval of a spec that the API
	// server rejects as invalid.
	healTime = 8 * time.Minute
	// settleTime is the time for instances to settle after the last change. quietTime is the
	// following time without any request.
	settleTime = 40 * time.Minute
	quietTime  = 10 * time.Minute
)

// observer checks a world while it runs and at its end.
type observer struct {
	w       *world.World
	watcher check.Watcher
	found   []string
}

// observe returns an observer that checks the world at each quiet moment from now on.
func observe(w *world.World) *observer {
	o := &observer{w: w}
	w.OnQuiet = func() {
		state := w.State()
		for _, problem := range slices.Concat(check.Moment(state), o.watcher.Moment(state), w.Audit()) {
			w.Note("found: %s", problem)
			o.found = append(o.found, fmt.Sprintf("at %s, %s", time.Now().Format(time.TimeOnly), problem))
		}
	}
	return o
}

// finish ends all faults, checks the invariants, starts one more rollout of all instances, and
// checks the final invariants. It returns the violations.
func (o *observer) finish() []string {
	w := o.w
	if len(o.found) > 0 {
		return o.found
	}
	w.Recover()
	w.Run(healTime)
	o.found = append(o.found, check.Explained(w.State())...)
	for _, instance := range w.State().Instances {
		instance.Spec.Paused, instance.Spec.ForceRedeploy = false, "last"
		w.Must(w.Write(instance))
	}
	w.Run(settleTime)
	before := w.Requests
	w.Run(quietTime)
	if count := w.Requests - before; count > 0 {
		o.found = append(o.found, fmt.Sprintf("%d requests at steady state", count))
	}
	state := w.State()
	for _, invariant := range []func(*check.State) []string{check.Settled, check.Moment} {
		o.found = append(o.found, invariant(state)...)
	}
	history := w.History()
	o.found = append(o.found, w.Problems...)
	o.found = append(o.found, w.Audit()...)
	o.found = append(o.found, w.Unbounded()...)
	o.found = append(o.found, check.Templates(history)...)
	o.found = append(o.found, check.Returns(history)...)
	return append(o.found, check.Same(state, fresh(w))...)
}

// fresh returns the cluster that results from the same inputs without faults and without a history.
func fresh(from *world.World) *check.State {
	w := world.New(from.Release, 0)
	for _, of := range []*storage.Resource{storage.ConfigMaps, storage.Secrets} {
		for _, found := range from.Store.List(of, world.Namespace) {
			input := (&unstructured.Unstructured{Object: found.Object}).DeepCopy()
			if len(input.GetOwnerReferences()) == 0 {
				input.SetResourceVersion("")
				w.Must(w.Create(input))
			}
		}
	}
	for _, instance := range from.State().Instances {
		clean := instance.DeepCopy()
		clean.ObjectMeta = world.Meta(instance.Name)
		clean.Labels = instance.Labels
		w.Must(w.Create(clean))
	}
	w.Start(0)
	defer w.Stop()
	w.Run(settleTime)
	return w.State()
}
