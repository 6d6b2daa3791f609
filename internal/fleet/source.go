package fleet

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Source requests a reconcile for each instance that gets a slot while it waits. The controller
// starts its workers after Listed, so that no instance waits only because of that.
func (g *Gate) Source() source.SyncingSource { return gateSource{g} }

type gateSource struct{ *Gate }

// Start implements source.Source.
func (s gateSource) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = queue
	return nil
}

// WaitForSync implements source.SyncingSource.
func (s gateSource) WaitForSync(ctx context.Context) error {
	select {
	case <-s.listed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("failed to list the objects for the rollout: %w", ctx.Err())
	}
}

func (g *Gate) isListed() bool {
	select {
	case <-g.listed:
		return true
	default:
		return false
	}
}
