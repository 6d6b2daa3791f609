package nginxoperator

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// statusDelay is the delay of a reconcile for the status of a Deployment. The Deployment controller
// writes the status several times while Pods start, and one reconcile is enough for writes that
// follow each other closely.
const statusDelay = 200 * time.Millisecond

// statusLater delays the requests for changes of a Deployment that did not change its spec. An
// earlier request for the same object takes their place.
type statusLater struct{ handler.EventHandler }

// Update implements handler.EventHandler.
func (h statusLater) Update(
	ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request],
) {
	isResync := e.ObjectNew.GetResourceVersion() == e.ObjectOld.GetResourceVersion()
	if !isResync && e.ObjectNew.GetGeneration() == e.ObjectOld.GetGeneration() {
		queue = later{queue}
	}
	h.EventHandler.Update(ctx, e, queue)
}

// later is a queue that delays its requests. It does not implement priorityqueue.PriorityQueue, so
// handlers add requests with Add.
type later struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Add implements workqueue.TypedInterface.
func (l later) Add(request reconcile.Request) { l.AddAfter(request, statusDelay) }
