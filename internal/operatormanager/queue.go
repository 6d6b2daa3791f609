package operatormanager

import (
	"math"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// freeShare is how much a namespace may ask for before it loses priority.
	freeShare = 32
	// halfLife is the time in which half of what a namespace asked for is forgotten.
	halfLife = 10 * time.Second
	// maxDemands bounds the namespaces that are told apart; above it, those that ask for next to nothing are forgotten.
	maxDemands = 4096
)

// fairQueue is the priority queue of controller-runtime in which the namespaces share the workers: the more a namespace asks for,
// the later it is served, so that nobody waits behind the thousand objects of somebody else. A namespace loses one step of
// priority each time that its demand doubles. What is unchanged (the first list, a resync) still comes after all else.
type fairQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	now func() time.Time

	mu      sync.Mutex
	demands map[string]demand
}

// demand is what a namespace asked for until a time, with what is older counting less.
type demand struct {
	amount float64
	at     time.Time
}

// newFairQueue is for controller.Options.
func newFairQueue(
	name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	inner := priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter })
	return &fairQueue{PriorityQueue: inner, now: time.Now, demands: map[string]demand{}}
}

// Add implements workqueue.TypedInterface.
func (q *fairQueue) Add(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, request)
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *fairQueue) AddAfter(request reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, request)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *fairQueue) AddRateLimited(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *fairQueue) AddWithOpts(opts priorityqueue.AddOpts, requests ...reconcile.Request) {
	asked := ptr.Deref(opts.Priority, 0)
	for _, request := range requests {
		priority := asked
		// A request that comes back from a worker with the priority that it got here keeps it.
		if asked == 0 || asked == handler.LowPriority {
			priority -= q.steps(request.Namespace)
		}
		opts.Priority = &priority
		q.PriorityQueue.AddWithOpts(opts, request)
	}
}

// steps counts one more demand of a namespace, and returns how much priority it has lost.
func (q *fairQueue) steps(namespace string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	if len(q.demands) >= maxDemands {
		for key, found := range q.demands {
			if found.left(now) < 1 {
				delete(q.demands, key)
			}
		}
	}
	amount := q.demands[namespace].left(now) + 1
	q.demands[namespace] = demand{amount, now}
	return int(math.Log2(max(amount/freeShare, 1)))
}

func (d demand) left(now time.Time) float64 {
	return d.amount * math.Exp2(-float64(now.Sub(d.at))/float64(halfLife))
}
