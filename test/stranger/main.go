// Command stranger relays TCP connections for the end-to-end tests. It is an HTTP CONNECT proxy, so
// that a test's connections come from the address of this Pod, which has no ServiceAccount token.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// address is the listen address. The Pod's readiness probe also uses it (GET /).
	address = ":3128"
	// maxConnections bounds the relayed connections. A test opens 1,000 connections to each of
	// three ports of each replica.
	maxConnections = 8192
	// dialTimeout bounds the connection attempt to the target, and lifetime a relayed connection.
	dialTimeout, lifetime = 10 * time.Second, 10 * time.Minute
	headerTimeout         = 10 * time.Second
	headerBytes           = 4 << 10
)

func main() {
	server := &http.Server{
		Addr: address, Handler: newRelay(), ReadHeaderTimeout: headerTimeout, IdleTimeout: headerTimeout, MaxHeaderBytes: headerBytes,
	}
	if err := server.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, "stranger:", err)
		os.Exit(1)
	}
}

// newRelay returns the proxy's handler. It relays CONNECT requests and answers all others with 204
// No Content.
func newRelay() http.Handler {
	free := semaphore.NewWeighted(maxConnections)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if !free.TryAcquire(1) {
			http.Error(w, "too many connections", http.StatusServiceUnavailable)
			return
		}
		defer free.Release(1)
		if err := relay(w, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
}

// relay connects a client to the host and port in its request, and copies data in both directions
// until either side closes. It returns an error only if the client can still receive a response.
func relay(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), dialTimeout)
	defer cancel()
	target, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Host)
	if err != nil {
		return fmt.Errorf("failed to connect: %w", err)
	}
	defer func() { _ = target.Close() }()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Errorf("failed to take over the connection: %w", err)
	}
	defer func() { _ = client.Close() }()

	end := time.Now().Add(lifetime)
	if err := errors.Join(client.SetDeadline(end), target.SetDeadline(end)); err != nil {
		return nil
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return nil
	}
	done := make(chan struct{}, 2)
	transfer := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go transfer(target, buffered)
	go transfer(client, target)
	<-done
	return nil
}
