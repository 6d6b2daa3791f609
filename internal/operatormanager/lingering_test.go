package operatormanager

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// server is a webhook server that only runs.
type server struct {
	webhook.Server
	ended chan time.Time
}

func (s *server) Start(ctx context.Context) error {
	<-ctx.Done()
	s.ended <- time.Now()
	return nil
}

// The manager does not wait, and the server goes on meanwhile.
func TestLingering(t *testing.T) {
	synctest.Test(t, testLingering)
}

func testLingering(t *testing.T) {
	const linger = 200 * time.Millisecond
	inner := &server{ended: make(chan time.Time, 1)}
	lingering := NewLingeringServer(inner, linger)
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() { returned <- lingering.Start(ctx) }()
	cancel()
	stopped := time.Now()
	if err := <-returned; err != nil || time.Since(stopped) > linger/2 {
		t.Errorf("returned %v after %s", err, time.Since(stopped))
	}
	if err := lingering.Wait(); err != nil {
		t.Error(err)
	}
	if lingered := (<-inner.ended).Sub(stopped); lingered < linger {
		t.Errorf("the server went on for %s", lingered)
	}
}
