// Package harness has what tests of several kinds share. Those on a bare API server have no Services and no Pods, so
// operators run as processes, and Service stands in for what the cluster would have between them and the API server.
package harness

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
)

// Service is one address in front of the webhooks of all operators that are ready, as a Service of a cluster is.
type Service struct {
	listener net.Listener
	mu       sync.Mutex
	backends []string
}

// NewService begins to listen on an address of 127.0.0.1. It ends with Close.
func NewService() (*Service, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("failed to listen: %w", err)
	}
	s := &Service{listener: listener}
	go s.accept()
	return s, nil
}

// URL is what the operators get as --webhook-url.
func (s *Service) URL() string { return "https://" + s.listener.Addr().String() }

// Close ends the listening; connections that are open go on.
func (s *Service) Close() { _ = s.listener.Close() }

// Add sends new connections to an operator as well, once it is ready.
func (s *Service) Add(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backends = append(s.backends, address)
}

// Remove sends no new connection to an operator, because it is about to end.
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

// forward connects to the first operator that takes the connection, and starts with another one the next time.
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
