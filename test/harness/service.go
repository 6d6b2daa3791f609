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
	"time"
)

// Service is one address for the webhooks of all ready operators, like a Kubernetes Service.
type Service struct {
	listener net.Listener

	mu       sync.Mutex
	backends []string
	isCut    bool
	open     []net.Conn
	delay    time.Duration
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

// Cut closes all connections, and refuses new ones until it is called with false.
func (s *Service) Cut(isCut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, connection := range s.open {
		_ = connection.Close()
	}
	s.isCut, s.open = isCut, nil
}

// Delay forwards requests after a delay.
func (s *Service) Delay(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = delay
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
	if s.open = append(s.open, client); s.isCut {
		backends = nil
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
		go pass(delayed{backend, s}, client)
		go pass(client, backend)
		<-done
		return
	}
}

// delayed is a connection to an operator, to which the Service writes after its delay.
type delayed struct {
	net.Conn
	service *Service
}

func (d delayed) Write(request []byte) (int, error) {
	d.service.mu.Lock()
	delay := d.service.delay
	d.service.mu.Unlock()
	time.Sleep(delay)
	return d.Conn.Write(request)
}
