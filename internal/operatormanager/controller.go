package operatormanager

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// reconcileTimeout bounds one reconcile, so that a request without an answer cannot hold a worker for ever.
	reconcileTimeout = time.Minute
	// firstRetry and lastRetry bound the back-off of an object whose reconcile failed.
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// ControllerOptions returns what the controllers have in common: a reconcile ends after a minute at the latest, and an object whose
// reconcile failed, be it by a panic, has another one after 200 milliseconds, then after twice as long each time, up to a minute. The
// namespaces share the workers.
func ControllerOptions() controller.Options {
	return controller.Options{
		ReconciliationTimeout: reconcileTimeout,
		RecoverPanic:          ptr.To(true),
		NewQueue:              newFairQueue,
		RateLimiter:           workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}
