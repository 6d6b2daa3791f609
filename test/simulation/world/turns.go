package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// One event wakes several goroutines of a process, and then they run concurrently. The scheduler
// must not decide which of them is the first. So everything by which they affect each other is a
// turn. The world takes one turn at a time, and only when nothing else is in progress. These are
// the kinds of turns, in the order in which the world takes turns that wait at the same time.
const (
	// turnAdd adds a request to the queue. Several handlers, the worker, and the fleet rollout add
	// requests, some in the order of a map.
	turnAdd = "1 add"
	// turnSee ends the worker's wait for the writes of the process in the cache. Before that, the
	// predicates evaluate the event, because they read what the worker changes.
	turnSee = "2 see"
	// turnGet lets the worker take a request from the queue, and turnReconcile lets it reconcile.
	turnGet, turnReconcile = "3 get", "4 reconcile"
)

// turn is an action that waits until nothing else is in progress.
type turn struct {
	name string
	act  func()
}

// later takes a turn when nothing else is in progress. Turns that wait at the same time are taken
// in the order of their names, and turns of the same name in the order of their arrival. The action
// must not block. A killed process takes no turn.
func (p *process) later(name string, act func()) {
	p.mu.Lock()
	p.turns = append(p.turns, turn{name, act})
	p.mu.Unlock()
	p.wakeUp()
}

// await waits until nothing else is in progress, or until the process is killed.
func (p *process) await(name string) {
	taken := make(chan struct{})
	p.later(name, func() { close(taken) })
	select {
	case <-taken:
	case <-p.killed:
	}
}

// proceed takes one turn of the operator, and reports whether there was one.
func (w *World) proceed() bool {
	if w.operator == nil {
		return false
	}
	next, found := w.operator.nextTurn()
	if !found {
		return false
	}
	if w.TraceAll {
		w.trace("turn %s", next.name)
	}
	next.act()
	return true
}

// nextTurn removes the first turn, and returns it.
func (p *process) nextTurn() (turn, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.turns) == 0 {
		return turn{}, false
	}
	slices.SortStableFunc(p.turns, func(a, b turn) int { return strings.Compare(a.name, b.name) })
	first := p.turns[0]
	p.turns = p.turns[1:]
	return first, true
}

// orderedQueue is the queue of the controller, whose changes are turns.
type orderedQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	of *process
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q orderedQueue) AddWithOpts(opts priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, request := range requests {
		name := fmt.Sprintf("%s %s priority %d after %d limited %t",
			turnAdd, request, ptr.Deref(opts.Priority, 0), opts.After, opts.RateLimited)
		q.of.later(name, func() { q.PriorityQueue.AddWithOpts(opts, request) })
	}
}

// Add implements workqueue.TypedInterface.
func (q orderedQueue) Add(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, request)
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q orderedQueue) AddAfter(request reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, request)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q orderedQueue) AddRateLimited(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q orderedQueue) GetWithPriority() (request reconcile.Request, priority int, shutdown bool) {
	q.of.await(turnGet)
	request, priority, shutdown = q.PriorityQueue.GetWithPriority()
	q.of.await(turnReconcile)
	return request, priority, shutdown
}

// newQueue is a constructor of the controller's queue.
type newQueue = func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]

// ordered returns a constructor of queues whose changes are turns.
func (p *process) ordered(of newQueue) newQueue {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
	) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return orderedQueue{of(name, limiter).(priorityqueue.PriorityQueue[reconcile.Request]), p}
	}
}

// orderedInformer is an informer of the cache. For a handler that is added without options, each
// event is a turn. This is the handler that ends waits for the writes of the process. The handlers
// of the controller only add requests.
type orderedInformer struct {
	cache.SharedIndexInformer
	of   *process
	kind string
}

// AddEventHandler implements cache.SharedInformer.
func (i orderedInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	later := func(act func()) { i.of.later(turnSee+" "+i.kind, act) }
	return i.SharedIndexInformer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, initial bool) { later(func() { handler.OnAdd(object, initial) }) },
		UpdateFunc: func(before, object any) { later(func() { handler.OnUpdate(before, object) }) },
		DeleteFunc: func(object any) { later(func() { handler.OnDelete(object) }) },
	})
}
