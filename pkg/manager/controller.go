package manager

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// reconcileTimeout bounds one reconcile, so a request without an answer does not block a
	// worker.
	reconcileTimeout = time.Minute
	// cacheSyncTimeout bounds the time until a new leader has its caches, after which it ends, and
	// another replica leads. All controllers wait for all caches. With 50,000 NginxOperators that
	// the API server has to convert first, two minutes were too short on two processors. A leader
	// that ended then would take the conversion away from the API server, which begins again.
	cacheSyncTimeout = 5 * time.Minute
	// firstRetry and lastRetry bound the back-off of an object whose reconcile failed.
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// ControllerOptions returns the common options of the controllers. A reconcile ends after a minute.
// After an error or a panic, the object is retried with exponential back-off, from 200 milliseconds
// to a minute. Namespaces share the workers.
func ControllerOptions() controller.Options {
	return controller.Options{
		ReconciliationTimeout: reconcileTimeout,
		RecoverPanic:          ptr.To(true),
		NewQueue:              newFairQueue,
		RateLimiter:           workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}
