// Package serving has the operator's three ports: webhooks, metrics, and probes. Any Pod can
// connect to them, so each port bounds the connections, the memory, and the time of a client.
package serving

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/example/nginx-operator/pkg/untrusted"
)

const (
	// firstBytes bounds the handshake, and then the header of each request.
	firstBytes = 10 * time.Second
	// answered bounds a request from its header to the last byte of the answer. The API server
	// waits for at most 30 seconds.
	answered = 40 * time.Second
	// keptIdle is the time that a connection stays open without a request, as in Go's HTTP clients.
	keptIdle = 90 * time.Second
	// headerBytes bounds the header of a request. A bearer token has at most 2 KiB.
	headerBytes = 16 << 10
	// drain is the time for running requests after the server has stopped. With the linger time of
	// the webhooks, it is less than the Pod's terminationGracePeriodSeconds.
	drain = 4 * time.Second
)

// Port is a port and its handler. With HTTP/1.1 only, a connection has one request at a time.
type Port struct {
	// Name is used in logs. Address is host:port.
	Name, Address string
	// TLS has GetCertificate. It is nil for plain HTTP.
	TLS     *tls.Config
	Handler http.Handler
	// Turns are shared with other ports.
	Turns *Turns
}

// Listen opens the port. A manager starts the server before its caches and its webhooks.
func (p Port) Listen(ctx context.Context) (*manager.Server, error) {
	// The server's own timeouts end idle connections. Keep-alive takes four system calls for each.
	inner, err := (&net.ListenConfig{KeepAlive: -1}).Listen(ctx, "tcp", p.Address)
	if err != nil {
		return nil, fmt.Errorf("failed to listen for %s: %w", p.Name, err)
	}
	return p.server(&listener{Listener: inner}), nil
}

func (p Port) server(listener net.Listener) *manager.Server {
	if p.TLS != nil {
		config := takeTurns(p.TLS, p.Turns)
		config.MinVersion, config.NextProtos = tls.VersionTLS12, []string{"http/1.1"}
		listener = tls.NewListener(listener, config)
	}

	inTurn := func(w http.ResponseWriter, r *http.Request) { p.Turns.serve(p.Handler, w, r) }
	protocols, timeout, logger := &http.Protocols{}, drain, ctrl.Log.WithName(p.Name)
	protocols.SetHTTP1(true)
	return &manager.Server{Name: p.Name, Listener: listener, ShutdownTimeout: &timeout, Server: &http.Server{
		Handler:           http.HandlerFunc(inTurn),
		Protocols:         protocols,
		BaseContext:       func(net.Listener) context.Context { return logr.NewContext(context.Background(), logger) },
		ConnContext:       withConnection,
		ConnState:         noteState,
		ReadHeaderTimeout: firstBytes,
		ReadTimeout:       answered,
		WriteTimeout:      answered,
		IdleTimeout:       keptIdle,
		MaxHeaderBytes:    headerBytes,
		// Any client can cause these errors, and choose a part of their text: the debug level.
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(untrusted.NewLimit().Logger(logger)), slog.Level(-1)),
	}}
}

// takeTurns returns a configuration whose handshakes take turns from the client's complete hello
// until the server waits for its next message. A handshake that waits for its client has no turn.
func takeTurns(config *tls.Config, turns *Turns) *tls.Config {
	config = config.Clone()
	take := func(hello *tls.ClientHelloInfo) error { return unwrap(hello.Conn).takeTurn(turns) }
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return nil, take(hello) }
	certificate := config.GetCertificate
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		// If the server requested a second hello, reading it has ended the turn.
		if err := take(hello); err != nil {
			return nil, err
		}
		return certificate(hello)
	}

	return config
}

// whileBusy marks the connection of a request as busy until the request is answered.
func whileBusy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection := connectionOf(r.Context())
		connection.note(true)
		defer connection.note(false)
		next.ServeHTTP(w, r)
	})
}

// checkValid is the time for which the result of a check is reused. checkTimeout bounds a check.
const checkValid, checkTimeout = time.Second, 10 * time.Second

// NewProbes returns the handler of /healthz and /readyz, with each check as in /readyz/webhooks.
func NewProbes(live, ready map[string]healthz.Checker) http.Handler {
	mux := http.NewServeMux()
	for path, checks := range map[string]map[string]healthz.Checker{"/healthz": live, "/readyz": ready} {
		handler := whileBusy(http.StripPrefix(path, &healthz.Handler{Checks: checks}))
		mux.Handle(path, handler)
		mux.Handle(path+"/", handler)
	}
	return mux
}

// Cached runs a check at most once per second and once at a time. No client can cancel it.
func Cached(check healthz.Checker) healthz.Checker {
	free, until, result := make(chan struct{}, 1), time.Time{}, error(nil)
	return func(r *http.Request) error {
		// The check of the webhooks makes a handshake with this process, which needs a turn.
		EndTurn(r.Context())
		free <- struct{}{}
		defer func() { <-free }()
		if !time.Now().Before(until) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), checkTimeout)
			defer cancel()
			result = check(r.WithContext(ctx))
			until = time.Now().Add(checkValid)
		}

		return result
	}
}
