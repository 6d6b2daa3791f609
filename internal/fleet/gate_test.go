package fleet

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func objectOf(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}
}

// newGate returns a Gate that knows so many objects, and the queue of what it has reconciled.
func newGate(t *testing.T, objects int) (*Gate, workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	g := New(intstr.FromString("10%"))
	if err := g.Source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	var listed []types.NamespacedName
	for i := range objects {
		listed = append(listed, objectOf(i))
	}
	g.Listed(listed)
	return g, queue
}

// next returns what the Gate has reconciled next.
func next(t *testing.T, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) types.NamespacedName {
	t.Helper()
	if queue.Len() == 0 {
		t.Fatal("nothing is reconciled")
	}
	request, _ := queue.Get()
	queue.Done(request)
	return request.NamespacedName
}

// Nothing begins before each object was reconciled, canaries begin first, and each one that is done lets the next begin.
func TestRollout(t *testing.T) {
	const objects = 30
	g, queue := newGate(t, objects)
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
	g.Seen(objectOf(objects - 1)) // its reconcile failed
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
		if now := g.Counts(); now.Rolling != len(began) || now.Rolling > 3 || now.Waiting() != objects-done-now.Rolling {
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

// One that failed stops all others, whatever becomes of those that have begun, until it is mended or gone.
func TestFailureStops(t *testing.T) {
	for name, mend := range map[string]func(*Gate, types.NamespacedName){
		"it is Ready after all": func(g *Gate, object types.NamespacedName) { g.Report(object, Outside, false) },
		"it is deleted":         (*Gate).Forget,
		"it rolls again":        func(g *Gate, object types.NamespacedName) { g.Report(object, Rolling, false) },
	} {
		t.Run(name, func(t *testing.T) {
			g, queue := newGate(t, 20)
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
			if now := g.Counts(); queue.Len() != 0 || now.Failed != 1 || g.Stopping() != began[0].String() {
				t.Fatalf("%+v, %d are reconciled, stopped by %s", now, queue.Len(), g.Stopping())
			}
			mend(g, began[0])
			if next := next(t, queue); slices.Contains(began, next) {
				t.Errorf("%s begins again", next)
			}
		})
	}
}

// What did not serve before holds a place while it rolls, and stops nobody when it fails.
func TestUnprovenFailure(t *testing.T) {
	g, queue := newGate(t, 3)
	g.Report(objectOf(0), Outside, false)
	g.Ask(objectOf(1), WaitingUnready)
	g.Report(objectOf(2), WaitingUnready, false)
	first := next(t, queue)
	g.Report(first, Rolling, false)
	if queue.Len() != 0 {
		t.Fatal("two roll at a time")
	}
	g.Report(first, Failed, false)
	if second := next(t, queue); second == first || g.Counts().Failed != 0 {
		t.Errorf("%s begins, %+v", second, g.Counts())
	}
}

// A reconcile that was made before the turn of an object came takes it nothing away.
func TestReportBehindTurn(t *testing.T) {
	g, queue := newGate(t, 2)
	g.Ask(objectOf(0), Waiting)
	g.Report(objectOf(1), Outside, false)
	if next(t, queue) != objectOf(0) {
		t.Fatal("it does not begin")
	}
	g.Report(objectOf(0), Waiting, false)
	if !g.Ask(objectOf(0), Waiting) || g.Counts().Rolling != 1 {
		t.Errorf("its turn was lost: %+v", g.Counts())
	}
}

// OLM may replace the operator when nothing waits, rolls or has failed, and is told so only when all objects were seen.
func TestVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		counts Counts
		reason string
		known  bool
	}{
		"idle":     {Counts{All: 3}, ReasonIdle, true},
		"starting": {Counts{All: 3, Unseen: 1}, ReasonIdle, false},
		"waiting":  {Counts{All: 3, Unseen: 1, Ready: 1}, ReasonRolling, true},
		"rolling":  {Counts{All: 3, Rolling: 1}, ReasonRolling, true},
		"stopped":  {Counts{All: 3, Ready: 2, Failed: 1}, ReasonStopped, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, known := verdictOf(test.counts, "shop/web"); known != test.known || got.reason != test.reason {
				t.Errorf("%+v, known: %t", got, known)
			}
		})
	}
}
