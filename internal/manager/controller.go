package manager

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// reconcileTimeout bounds one pass, so that a request without an answer cannot hold a worker for ever.
	reconcileTimeout = time.Minute
	// firstRetry and lastRetry bound the back-off of an object whose pass failed.
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// ControllerOptions returns what the controllers have in common: a pass ends after a minute at the latest, and an object whose
// pass failed has another one after 200 milliseconds, then after twice as long each time, up to a minute.
func ControllerOptions() controller.Options {
	return controller.Options{
		ReconciliationTimeout: reconcileTimeout,
		RateLimiter:           workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}
