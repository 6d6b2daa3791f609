package operatormanager

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
)

// countedLease counts the writes of a Lease.
type countedLease struct {
	resourcelock.Interface
	writes int
	err    error
}

func (l *countedLease) Identity() string { return "me" }

func (l *countedLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{}, nil, nil
}

func (l *countedLease) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	l.writes++
	return l.err
}

// Only the client of the Lease gets a timeout. A timeout in the shared configuration would end
// every watch of the manager.
func TestLeaseLeavesTheConfigAlone(t *testing.T) {
	config := &rest.Config{Host: "https://192.0.2.1", UserAgent: "nginx-operator"}
	lease, err := NewLease(config, NewScheme(), time.Second, leaderelection.Options{
		LeaderElection: true, LeaderElectionID: "id", LeaderElectionNamespace: "system", RenewDeadline: 10 * time.Second,
	})
	if err != nil || lease == nil {
		t.Fatalf("Lease %v, %v", lease, err)
	}
	if config.Timeout != 0 || config.UserAgent != "nginx-operator" {
		t.Errorf("the manager's clients have the time-out %s and the name %q", config.Timeout, config.UserAgent)
	}
}

// A renewal soon after another one is skipped. Acquiring, releasing, and renewals after a failure
// are never skipped.
func TestLeaseIsRenewedSparingly(t *testing.T) {
	inner, now := &countedLease{}, time.Now()
	lease := &sparingLease{Interface: inner, every: 3 * time.Second, now: func() time.Time { return now }}
	down := errors.New("down")
	for _, step := range []struct {
		name   string
		after  time.Duration
		holder string
		err    error
		look   bool
		writes int
	}{
		{"it is taken", 0, "me", nil, true, 1},
		{"at once", 500 * time.Millisecond, "me", nil, false, 0},
		{"almost due", 2400 * time.Millisecond, "me", nil, false, 0},
		{"due", 100 * time.Millisecond, "me", nil, false, 1},
		{"the API server is down when it is due", 3 * time.Second, "me", down, false, 1},
		{"tried again", 500 * time.Millisecond, "me", nil, false, 1},
		{"somebody looked at it", 500 * time.Millisecond, "me", nil, true, 1},
		{"given back", 500 * time.Millisecond, "", nil, false, 1},
		{"taken again", 500 * time.Millisecond, "me", nil, false, 1},
	} {
		now = now.Add(step.after)
		inner.writes, inner.err = 0, step.err
		if step.look {
			if _, _, err := lease.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		err := lease.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: step.holder})
		if !errors.Is(err, step.err) || inner.writes != step.writes {
			t.Errorf("%s: %d writes, want %d (%v)", step.name, inner.writes, step.writes, err)
		}
	}
}
