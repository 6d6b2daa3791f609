package manager

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func requestIn(namespace string, i int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint("web-", i)}}
}

func newTestQueue(t *testing.T) *fairQueue {
	t.Helper()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Hour, time.Hour)
	queue := newFairQueue(t.Name(), limiter).(*fairQueue)
	t.Cleanup(queue.ShutDown)
	now := time.Now()
	queue.now = func() time.Time { return now }
	return queue
}

// served returns the number of requests that the queue returns before want.
func served(t *testing.T, queue *fairQueue, want reconcile.Request) int {
	t.Helper()
	for before := 0; ; before++ {
		got, _, shutdown := queue.GetWithPriority()
		if shutdown {
			t.Fatal("the queue is shut down")
		}
		queue.Done(got)
		if got == want {
			return before
		}
	}
}

// TestQueueIsFair verifies that a namespace with few requests does not wait for all requests of a
// namespace with many. It waits only for the requests that the other namespace can add without
// losing priority.
func TestQueueIsFair(t *testing.T) {
	queue := newTestQueue(t)
	for i := range 2000 {
		queue.Add(requestIn("noisy", i))
	}
	queue.Add(requestIn("quiet", 0))
	for i := range 2000 {
		queue.Add(requestIn("noisy", 2000+i))
	}
	if before := served(t, queue, requestIn("quiet", 0)); before > 2*freeShare {
		t.Errorf("%d were served before", before)
	}
	// Many requests of one object, for example in a fight with another client, are delayed as well.
	for range 2000 {
		queue.Add(requestIn("fights", 0))
	}
	queue.Add(requestIn("quiet", 1))
	queue.Add(requestIn("fights", 1))
	if before := served(t, queue, requestIn("quiet", 1)); before > 2*freeShare {
		t.Errorf("%d were served before", before)
	}
}

// TestDemandIsForgotten verifies that the demand of a namespace decreases over time, and that the
// namespace is removed in the end.
func TestDemandIsForgotten(t *testing.T) {
	queue := newTestQueue(t)
	for range 8 * freeShare {
		queue.steps("noisy")
	}
	if steps := queue.steps("noisy"); steps != 3 {
		t.Errorf("%d steps after eight times the free share", steps)
	}
	now := queue.now()
	queue.now = func() time.Time { return now.Add(2 * halfLife) }
	if steps := queue.steps("noisy"); steps != 1 {
		t.Errorf("%d steps two half-lives later", steps)
	}
	for i := range maxDemands {
		queue.steps(fmt.Sprint("namespace-", i))
	}
	queue.now = func() time.Time { return now.Add(100 * halfLife) }
	if queue.steps("another"); len(queue.demands) != 1 {
		t.Errorf("%d namespaces are remembered", len(queue.demands))
	}
}

// TestPriorities verifies the priorities of requests from a busy namespace. An explicit priority is
// retained. Unchanged objects have the lowest priority.
func TestPriorities(t *testing.T) {
	queue := newTestQueue(t)
	for range 16 * freeShare {
		queue.steps("noisy")
	}
	for _, step := range []struct {
		asked *int
		want  int
	}{{nil, -4}, {ptr.To(handler.LowPriority), handler.LowPriority - 4}, {ptr.To(-3), -3}} {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: step.asked}, requestIn("noisy", 0))
		got, priority, _ := queue.GetWithPriority()
		queue.Done(got)
		if priority != step.want {
			t.Errorf("asked for %v: priority %d, want %d", step.asked, priority, step.want)
		}
	}
}

// TestRequestsArePutOff verifies that a deferred request is neither returned immediately nor lost.
func TestRequestsArePutOff(t *testing.T) {
	queue := newTestQueue(t)
	queue.AddRateLimited(requestIn("shop", 0)) // the limiter delays it by an hour
	queue.AddAfter(requestIn("shop", 1), time.Hour)
	queue.AddAfter(requestIn("shop", 2), 10*time.Millisecond)
	if before := served(t, queue, requestIn("shop", 2)); before != 0 {
		t.Errorf("%d were served before", before)
	}
	if n := queue.NumRequeues(requestIn("shop", 0)); n != 1 {
		t.Errorf("%d requeues", n)
	}
}
