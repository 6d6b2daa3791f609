package fleet

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func objectOf(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}
}

// many returns a number of objects in a namespace.
func many(namespace string, objects int) []types.NamespacedName {
	var out []types.NamespacedName
	for i := range objects {
		out = append(out, types.NamespacedName{Namespace: namespace, Name: objectOf(i).Name})
	}
	return out
}

// newGate returns a Gate that knows the listed objects, and the queue of its requests.
func newGate(t *testing.T, listed ...[]types.NamespacedName) (*Gate, queue) {
	t.Helper()
	requests := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(requests.ShutDown)
	g := New(tenPercent)
	if err := g.Start(t.Context(), requests); err != nil {
		t.Fatal(err)
	}
	g.Listed(slices.Concat(listed...))
	return g, requests
}

// stateNow returns the current state while other goroutines use the Gate.
func stateNow(g *Gate) State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return *g.update()
}

// next returns the next object in the queue. It fails the test if the queue is empty.
func next(t *testing.T, queue queue) types.NamespacedName {
	t.Helper()
	if queue.Len() == 0 {
		t.Fatal("nothing is reconciled")
	}
	request, _ := queue.Get()
	queue.Done(request)
	return request.NamespacedName
}

// TestRollout verifies that no instance starts before all objects were reconciled, that canaries
// start first, and that each completed instance admits the next one.
func TestRollout(t *testing.T) {
	const objects = 30
	g, queue := newGate(t, many("shop", objects))
	for i := range objects - 1 {
		group := Waiting
		if i == 0 {
			group = WaitingCanary
		}
		if g.Ask(objectOf(i), group) {
			t.Fatalf("%d begins before all were seen", i)
		}
	}
	if queue.Len() != 0 {
		t.Fatal("something is reconciled before all were seen")
	}
	g.Report(objectOf(objects-1), Unknown, false) // its reconcile has failed
	if canary := next(t, queue); canary != objectOf(0) || queue.Len() != 0 {
		t.Fatalf("%s begins, and %d more", canary, queue.Len())
	}
	if !g.Ask(objectOf(0), WaitingCanary) || g.Ask(objectOf(objects-1), Waiting) {
		t.Fatal("the canary does not begin alone")
	}
	g.Report(objectOf(0), Rolling, true)
	g.Report(objectOf(0), Outside, true)
	began := []types.NamespacedName{next(t, queue), next(t, queue), next(t, queue)}
	for done := 1; ; done++ {
		if now := g.state.Sum; now[Rolling] != len(began) || now[Rolling] > 3 || now.waiting() != objects-done-now[Rolling] {
			t.Fatalf("%+v after %d", now, done)
		}
		if len(began) == 0 {
			break
		}
		if !g.Ask(began[0], Waiting) {
			t.Fatalf("%s does not begin", began[0])
		}
		g.Report(began[0], Rolling, false)
		g.Report(began[0], Outside, false)
		began = began[1:]
		for queue.Len() > 0 {
			began = append(began, next(t, queue))
		}
	}
}

// TestFailureStops verifies that a failed instance stops the other instances of its namespace until
// it recovers or is deleted, for any result of instances that have already started.
func TestFailureStops(t *testing.T) {
	for name, mend := range map[string]func(*Gate, types.NamespacedName){
		"it is Ready after all": func(g *Gate, object types.NamespacedName) { g.Report(object, Outside, false) },
		"it is deleted":         (*Gate).Forget,
		"it rolls again":        func(g *Gate, object types.NamespacedName) { g.Report(object, Rolling, false) },
	} {
		t.Run(name, func(t *testing.T) {
			g, queue := newGate(t, many("shop", 20))
			var began []types.NamespacedName
			for i := range 20 {
				if g.Ask(objectOf(i), Waiting) {
					began = append(began, objectOf(i))
				}
			}
			if len(began) != 1 {
				t.Fatalf("%v begin", began)
			}
			began = append(began, next(t, queue))
			g.Report(began[0], Failed, false)
			g.Report(began[1], Outside, false)
			if now := g.state.Sum; queue.Len() != 0 || now[Failed] != 1 || some(g.order.failed()) != began[0].String() {
				t.Fatalf("%+v, %d are reconciled, %s fails", now, queue.Len(), some(g.order.failed()))
			}
			mend(g, began[0])
			if next := next(t, queue); slices.Contains(began, next) {
				t.Errorf("%s begins again", next)
			}
		})
	}
}

// TestUnprovenFailure verifies that an instance that did not serve before occupies a slot while it
// rolls, and does not stop others if it fails.
func TestUnprovenFailure(t *testing.T) {
	g, queue := newGate(t, many("shop", 3))
	g.Report(objectOf(0), Outside, false)
	g.Ask(objectOf(1), WaitingUnready)
	g.Report(objectOf(2), WaitingUnready, false)
	first := next(t, queue)
	g.Report(first, Rolling, false)
	if queue.Len() != 0 {
		t.Fatal("two roll at a time")
	}
	g.Report(first, Failed, false)
	if second := next(t, queue); second == first || g.state.Sum[Failed] != 0 {
		t.Errorf("%s begins, %+v", second, g.state)
	}
}

// TestReportBehindTurn verifies that an object keeps its slot if a reconcile that started before
// the admission reports it as waiting.
func TestReportBehindTurn(t *testing.T) {
	g, queue := newGate(t, many("shop", 2))
	g.Ask(objectOf(0), Waiting)
	g.Report(objectOf(1), Outside, false)
	if next(t, queue) != objectOf(0) {
		t.Fatal("it does not begin")
	}
	g.Report(objectOf(0), Waiting, false)
	if !g.Ask(objectOf(0), Waiting) || g.state.Sum[Rolling] != 1 {
		t.Errorf("its turn was lost: %+v", g.state)
	}
}

// rollAll starts admitted instances until none is left. It completes an instance if may returns
// true. It returns the number of completed instances by namespace.
func rollAll(t *testing.T, g *Gate, queue queue, may func(types.NamespacedName) bool) map[string]int {
	t.Helper()
	rolled := map[string]int{}
	for queue.Len() > 0 {
		started := next(t, queue)
		if !g.Ask(started, Waiting) {
			t.Fatalf("%s does not start", started)
		}
		g.Report(started, Rolling, false)
		if may(started) {
			g.Report(started, Outside, false)
			rolled[started.Namespace]++
		}
	}
	return rolled
}

// TestTenantHoldsUpNoOther verifies that a hostile tenant does not delay other namespaces. The
// tenant uses the canary label, has more instances than all others, has instances that fail or
// never complete, and starts some without a slot.
func TestTenantHoldsUpNoOther(t *testing.T) {
	const theirs, others = 60, 12
	for name, attack := range map[string]struct {
		group Place
		begin Place
	}{
		"slow canaries":          {WaitingCanary, Rolling},
		"failing canaries":       {WaitingCanary, Failed},
		"slow instances":         {Waiting, Rolling},
		"failing instances":      {Waiting, Failed},
		"slow ones out of order": {Outside, Rolling},
	} {
		t.Run(name, func(t *testing.T) {
			mallory, shop, bank := many("mallory", theirs), many("shop", others), many("bank", others)
			g, queue := newGate(t, mallory, shop, bank)
			for _, object := range mallory {
				if attack.group == Outside {
					g.Report(object, attack.begin, false)
				} else {
					g.Report(object, attack.group, attack.group == WaitingCanary)
				}
			}
			for _, object := range append(shop, bank...) {
				g.Report(object, Waiting, false)
			}
			rolled := map[string]int{}
			for queue.Len() > 0 {
				started := next(t, queue)
				g.Report(started, Rolling, attack.group == WaitingCanary && started.Namespace == "mallory")
				if started.Namespace == "mallory" {
					g.Report(started, attack.begin, attack.group == WaitingCanary)
					continue
				}
				rolled[started.Namespace]++
				g.Report(started, Outside, false)
			}
			if rolled["shop"] != others || rolled["bank"] != others {
				t.Errorf("rolled %v, want all of shop and bank; %+v", rolled, g.state)
			}
		})
	}
}

// TestFailuresOfTwoNamespacesStop verifies that a release that fails in two namespaces stops
// everywhere. If one of them is repaired, the rollout continues, except in the namespace that still
// fails.
func TestFailuresOfTwoNamespacesStop(t *testing.T) {
	mallory, shop, bank := many("mallory", 3), many("shop", 3), many("bank", 3)
	g, queue := newGate(t, mallory, shop, bank)
	for _, object := range slices.Concat(mallory, shop, bank) {
		g.Report(object, Waiting, false)
	}
	first, second := next(t, queue), next(t, queue)
	if first.Namespace == second.Namespace || queue.Len() > 0 {
		t.Fatalf("%s and %s start, and %d more", first, second, queue.Len())
	}
	g.Report(first, Failed, false)
	g.Report(second, Failed, false)
	for queue.Len() > 0 { // a third instance may start after the first failure
		g.Report(next(t, queue), Outside, false)
	}
	if now := g.state; !tenPercent.Stopped(&now) || now.Sum.waiting() < 6 {
		t.Errorf("%+v", now)
	}
	g.Forget(first) // a user repairs one of the two namespaces
	rolled := rollAll(t, g, queue, func(types.NamespacedName) bool { return true })
	if now := g.state.Sum; now.waiting() != 2 || now[Failed] != 1 || rolled[second.Namespace] > 0 {
		t.Errorf("rolled %v, %+v", rolled, g.state)
	}
}

// TestSlotExpires verifies that an instance occupies its slot for at most SlotTime, for any
// deadline and any number of reports. A hostile tenant controls both. Then other namespaces
// continue. The other instances of its own namespace wait until it is Ready.
func TestSlotExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mallory, eve, shop := many("mallory", 3), many("eve", 1), many("shop", 1)
		g, queue := newGate(t, mallory, eve, shop)
		for _, object := range append(mallory, eve...) {
			g.Report(object, Waiting, false)
		}
		g.Report(shop[0], Outside, false)
		slow := []types.NamespacedName{next(t, queue), next(t, queue)}
		g.Report(shop[0], Waiting, false)
		for minute := range int(SlotTime.Minutes()) {
			for _, object := range slow {
				g.Report(object, Rolling, false)
			}
			if overdue := g.Expire(time.Now()); len(overdue) > 0 || queue.Len() > 0 {
				t.Fatalf("minute %d: %v are overdue, %d start", minute, overdue, queue.Len())
			}
			time.Sleep(time.Minute)
		}
		if overdue := g.Expire(time.Now()); len(overdue) != 2 {
			t.Fatalf("%v are overdue", overdue)
		}
		if started := next(t, queue); started != shop[0] || queue.Len() > 0 {
			t.Fatalf("%s starts, and %d more", started, queue.Len())
		}
		for _, object := range slow {
			if !g.Ask(object, Waiting) {
				t.Errorf("%s has to start again", object)
			}
			g.Report(object, Rolling, false)
		}
		if now := g.state.Sum; now[Overdue] != 2 || now[Rolling] != 1 || now[Failed] != 0 {
			t.Errorf("%+v", now)
		}
		g.Report(shop[0], Outside, false)
		if queue.Len() > 0 {
			t.Error("the namespace of an overdue instance starts another one")
		}
		for _, object := range slow {
			g.Report(object, Outside, false)
		}
		rolled := rollAll(t, g, queue, func(types.NamespacedName) bool { return true })
		if rolled["mallory"] != 2 || len(g.state.Namespaces) > 0 {
			t.Errorf("rolled %v, %+v", rolled, g.state)
		}
	})
}

// TestTimeInSlot verifies that a temporary failure gives an instance no additional time, and that
// it gets its full time, however long it waited before it started.
func TestTimeInSlot(t *testing.T) {
	for name, test := range map[string]struct {
		before Place
		left   time.Duration
	}{"it failed": {Rolling, SlotTime / 2}, "it waited": {Waiting, SlotTime}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, _ := newGate(t, many("shop", 1))
				g.Report(objectOf(1), Failed, false)
				g.Report(objectOf(0), test.before, false)
				time.Sleep(SlotTime / 2)
				if test.before == Rolling {
					g.Report(objectOf(0), Failed, false)
				}
				g.Report(objectOf(0), Rolling, false)
				if overdue := g.Expire(time.Now().Add(test.left - 1)); len(overdue) > 0 {
					t.Errorf("%v are overdue too early", overdue)
				}
				if overdue := g.Expire(time.Now().Add(test.left)); len(overdue) != 1 {
					t.Errorf("%v are overdue", overdue)
				}
			})
		})
	}
}
