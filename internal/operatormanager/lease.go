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

// NewLease returns the Lease of the leader election. The leader renews it at most once per
// renewEvery. The options are those of the manager. Without leader election, the Lease is nil.
// client-go renews as often as a standby checks the Lease, so a fast handover would otherwise cost
// as many writes.
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

// leaderEvents records Events for changes of the leader. The rest of the interface is not used.
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

// sparingLease skips a renewal that follows another one too soon. The Lease is then valid for less
// than its duration, so the sum of the interval of renewals and the deadline of a renewal must be
// less than that duration.
type sparingLease struct {
	resourcelock.Interface
	every time.Duration
	now   func() time.Time

	mu sync.Mutex
	// renewed is the time of this process's last renewal. It is zero if another process could hold
	// the Lease.
	renewed time.Time
}

// Get implements resourcelock.Interface. client-go calls it after a failed renewal, and while this
// process does not lead.
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
