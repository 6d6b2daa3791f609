package operatormanager

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// LingeringServer is a webhook server that goes on to answer for a while after the manager has stopped: until the nodes
// have taken the Pod out of the Service, the API server goes on to call it, and a conversion that fails is a read that
// fails. The manager does not wait for it, so that the Lease is given back at once.
type LingeringServer struct {
	webhook.Server
	linger time.Duration
	ended  chan error
}

// NewLingeringServer returns a server that answers for so long after its context has ended.
func NewLingeringServer(server webhook.Server, linger time.Duration) *LingeringServer {
	return &LingeringServer{Server: server, linger: linger, ended: make(chan error, 1)}
}

// Start serves, and returns when the context ends or serving fails.
func (s *LingeringServer) Start(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	failed := make(chan error, 1)
	go func() {
		err := s.Server.Start(serving)
		failed <- err
		s.ended <- err
	}()
	select {
	case err := <-failed:
		stop()
		return err
	case <-ctx.Done():
		time.AfterFunc(s.linger, stop)
		return nil
	}
}

// Wait returns when the server has ended; it has to have been started.
func (s *LingeringServer) Wait() error { return <-s.ended }
