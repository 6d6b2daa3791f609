package manager

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
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
