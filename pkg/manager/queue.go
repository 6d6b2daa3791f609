package manager

import (
	"maps"
	"math"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// reconcileTimeout bounds one reconcile, so a request without an answer blocks no worker.
	reconcileTimeout = time.Minute
	// cacheSyncTimeout bounds the time until a new leader has its caches. After it, another replica
	// leads, and the API server converts all objects again. With 50,000 NginxOperators, two minutes
	// are too short on two processors.
	cacheSyncTimeout = 5 * time.Minute
	// firstRetry and lastRetry bound the back-off of an object whose reconcile failed.
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// ControllerOptions returns the common options of the controllers. A reconcile ends after a minute.
// After an error or a panic, it is retried with back-off, from 200 milliseconds to a minute.
func ControllerOptions() controller.Options {
	return controller.Options{
		ReconciliationTimeout: reconcileTimeout,
		RecoverPanic:          ptr.To(true),
		NewQueue:              newFairQueue,
		RateLimiter:           workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

const (
	// freeShare is the number of requests of a namespace before it loses priority.
	freeShare = 32
	// halfLife is the time in which the demand of a namespace decreases by half.
	halfLife = 10 * time.Second
	// maxDemands is the number of known demands above which the least are forgotten.
	maxDemands = 4096
)

// fairQueue is the priority queue of controller-runtime, shared fairly by namespaces: a namespace
// loses one step of priority each time its demand doubles, so no namespace waits for the thousand
// objects of another one. Unchanged objects (the first list, a resync) have the lowest priority.
type fairQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	now func() time.Time

	mu      sync.Mutex
	demands map[string]demand
}

type demand struct {
	amount float64
	at     time.Time
}

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
		// A worker requeues a request with the priority that was set here, and that priority stays.
		if asked == 0 || asked == handler.LowPriority {
			priority -= q.steps(request.Namespace)
		}

		opts.Priority = &priority
		q.PriorityQueue.AddWithOpts(opts, request)
	}
}

// steps counts a request, and returns the priority steps that its namespace has lost.
func (q *fairQueue) steps(namespace string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	if len(q.demands) >= maxDemands {
		maps.DeleteFunc(q.demands, func(_ string, d demand) bool { return d.left(now) < 1 })
	}

	amount := q.demands[namespace].left(now) + 1
	q.demands[namespace] = demand{amount, now}
	return int(math.Log2(max(amount/freeShare, 1)))
}

func (d demand) left(now time.Time) float64 {
	return d.amount * math.Exp2(-float64(now.Sub(d.at))/float64(halfLife))
}
