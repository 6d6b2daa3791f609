package operatormanager

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// NewLease returns the Lease of the leader election, which the leader renews no more often than said. The options are those of the
// manager; without leader election the Lease is nil. client-go renews as often as a standby asks whether the Lease is free, so a
// quick change of leaders would cost as many writes.
func NewLease(
	cfg *rest.Config, scheme *runtime.Scheme, renewEvery time.Duration, options leaderelection.Options,
) (resourcelock.Interface, error) {
	if !options.LeaderElection {
		return nil, nil
	}
	clients, err := typedcorev1.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("failed to make a client for Events: %w", err)
	}
	lock, err := leaderelection.NewResourceLock(rest.CopyConfig(cfg), &leaderEvents{scheme: scheme, sink: clients.Events("")}, options)
	if err != nil {
		return nil, fmt.Errorf("failed to make the Lease: %w", err)
	}
	return &sparingLease{Interface: lock, every: renewEvery, now: time.Now}, nil
}

// leaderEvents tells of a change of leaders. The rest of the interface is not used.
type leaderEvents struct {
	recorder.Provider
	scheme *runtime.Scheme
	sink   typedcorev1.EventInterface
}

// GetEventRecorderFor implements recorder.Provider.
func (e *leaderEvents) GetEventRecorderFor(name string) record.EventRecorder {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: e.sink})
	return broadcaster.NewRecorder(e.scheme, corev1.EventSource{Component: name})
}

// sparingLease passes over a renewal that comes soon after another. The Lease is then valid for that much less than it says, so the
// time between two renewals and the time in which one is tried have to be less than its duration together.
type sparingLease struct {
	resourcelock.Interface
	every time.Duration
	now   func() time.Time

	mu sync.Mutex
	// renewed is when this process wrote last that it holds the Lease, zero where somebody else may hold it.
	renewed time.Time
}

// Get implements resourcelock.Interface. It is asked when a renewal has failed and when this process does not lead.
func (l *sparingLease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.note(time.Time{})
	return l.Interface.Get(ctx)
}

// Update implements resourcelock.Interface.
func (l *sparingLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	now := l.now()
	holds := record.HolderIdentity == l.Identity()
	if holds && l.isFresh(now) {
		return nil
	}
	if err := l.Interface.Update(ctx, record); err != nil {
		l.note(time.Time{})
		return err
	}
	if holds {
		l.note(now)
	} else {
		l.note(time.Time{})
	}
	return nil
}

func (l *sparingLease) isFresh(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero() && now.Sub(l.renewed) < l.every
}

func (l *sparingLease) note(renewed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = renewed
}
