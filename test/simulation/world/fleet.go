package world

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// slowReader returns a list after a delay, like a process without processor time after the list.
type slowReader struct {
	client.Reader
	delay time.Duration
}

// List implements client.Reader.
func (s slowReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := s.Reader.List(ctx, list, options...)
	if s.delay > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(s.delay):
		}
	}
	return err
}
