package world

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/nginx-operator/test/simulation/check"
)

// fleetReport stores the last OperatorCondition about the rollout of a release.
type fleetReport struct {
	mu   sync.Mutex
	last check.Fleet
}

// Set implements fleet.Condition.
func (f *fleetReport) Set(_ context.Context, _ metav1.ConditionStatus, reason, message string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = check.Fleet{Reason: reason, Message: message}
	return nil
}

func (f *fleetReport) get() check.Fleet {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// slow returns a function that returns the names after a delay, like a process without processor time
// after the list.
func slow(list func(context.Context) ([]types.NamespacedName, error), delay time.Duration,
) func(context.Context) ([]types.NamespacedName, error) {
	return func(ctx context.Context) ([]types.NamespacedName, error) {
		out, err := list(ctx)
		if delay > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(delay):
			}
		}
		return out, err
	}
}
