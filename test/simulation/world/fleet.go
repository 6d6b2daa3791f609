package world

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/test/simulation/check"
)

// fleetReport stores the last OperatorCondition about the fleet rollout.
type fleetReport struct{ last atomic.Pointer[check.Fleet] }

func (f *fleetReport) set(_ context.Context, _ metav1.ConditionStatus, reason, message string) error {
	f.last.Store(&check.Fleet{Reason: reason, Message: message})
	return nil
}

func (f *fleetReport) get() check.Fleet { return ptr.Deref(f.last.Load(), check.Fleet{}) }

// slow returns a function that returns the names after a delay, like a process without processor
// time after the list.
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
