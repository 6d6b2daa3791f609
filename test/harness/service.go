// Package harness has helpers for several kinds of tests. Tests on a bare API server have no
// Services and no Pods. Their operators run as processes, and Service replaces the Kubernetes
// Service between them and the API server.
package harness

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
)

// Service is one address for the webhooks of all ready operators, like a Kubernetes Service.
type Service struct {
	listener net.Listener
	mu       sync.Mutex
	backends []string
}

// NewService listens on an address of 127.0.0.1. Close ends it.
func NewService() (*Service, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("failed to listen: %w", err)
	}
	s := &Service{listener: listener}
	go s.accept()
	return s, nil
}

// URL returns the value for the operators' --webhook-url.
func (s *Service) URL() string { return "https://" + s.listener.Addr().String() }

// Close stops listening. Open connections stay open.
func (s *Service) Close() { _ = s.listener.Close() }

// Add adds an operator to the backends for new connections. The operator must be ready.
func (s *Service) Add(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backends = append(s.backends, address)
}

// Remove removes an operator from the backends for new connections before it ends.
func (s *Service) Remove(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backends = slices.DeleteFunc(s.backends, func(one string) bool { return one == address })
}

func (s *Service) accept() {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return
		}
		go s.forward(connection)
	}
}

// forward connects the client to the first operator that accepts the connection. The order of the
// operators rotates with each connection.
func (s *Service) forward(client net.Conn) {
	defer func() { _ = client.Close() }()
	s.mu.Lock()
	backends := slices.Clone(s.backends)
	if len(s.backends) > 1 {
		s.backends = append(s.backends[1:], s.backends[0])
	}
	s.mu.Unlock()
	for _, address := range backends {
		backend, err := net.Dial("tcp", address)
		if err != nil {
			continue
		}
		defer func() { _ = backend.Close() }()
		done := make(chan struct{}, 2)
		pass := func(to io.Writer, from io.Reader) {
			_, _ = io.Copy(to, from)
			done <- struct{}{}
		}
		go pass(backend, client)
		go pass(client, backend)
		<-done
		return
	}
}
