package operatormanager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// What the webhook server lets a connection take. That of controller-runtime bounds neither their number nor how long an answer may
// take, and lets each have a megabyte of headers and one for each frame.
const (
	// firstBytes bounds the handshake, and then the header of each request, from its first byte on.
	firstBytes = 10 * time.Second
	// answered bounds a request from its header to the last byte of the answer. The API server waits 30 seconds at most.
	answered = 40 * time.Second
	// keptIdle is how long a connection is kept without a request: as long as Go's clients keep it.
	keptIdle = 90 * time.Second
	// headerBytes bounds the header of a request. That of the API server has some hundred bytes.
	headerBytes = 16 << 10
	// frameBytes and windowBytes bound what HTTP/2 reads ahead on a connection. The API server's webhooks use HTTP/1.1.
	frameBytes, windowBytes = 16 << 10, 64 << 10
	// drain is how long requests have that are being answered when the server ends. Together with the time that it lingers it is
	// less than the Pod's terminationGracePeriodSeconds.
	drain = 4 * time.Second
)

// LimitedServer is a webhook server of which no client can take more memory than there is for webhooks, nor all of that, and no
// more connections than there is room for, nor all of them.
type LimitedServer struct {
	webhook.Server
	options        webhook.Options
	conversionPath string
	requests       *requests
	started        chan struct{}
}

// NewLimitedServer returns a server that bounds the handlers which are registered with it. The options have to give it a certificate
// (TLSOpts).
func NewLimitedServer(options webhook.Options, conversionPath string) *LimitedServer {
	if options.WebhookMux == nil {
		options.WebhookMux = http.NewServeMux()
	}
	return &LimitedServer{
		Server: webhook.NewServer(options), options: options, conversionPath: conversionPath,
		requests: newRequests(), started: make(chan struct{}),
	}
}

// Register adds a handler, with what may be posted to it.
func (s *LimitedServer) Register(path string, hook http.Handler) {
	if path == s.conversionPath {
		s.Server.Register(path, s.requests.limit(hook, largestConversion, 1))
		return
	}
	s.Server.Register(path, s.requests.limit(hook, largestAdmission, admissionCopies))
}

// Start serves until the context ends.
func (s *LimitedServer) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address())
	if err != nil {
		return fmt.Errorf("failed to listen for webhooks: %w", err)
	}
	return s.serve(ctx, newConnections(listener))
}

func (s *LimitedServer) address() string {
	return net.JoinHostPort(s.options.Host, strconv.Itoa(s.options.Port))
}

func (s *LimitedServer) serve(ctx context.Context, listener *connections) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	for _, option := range s.options.TLSOpts {
		option(config)
	}
	logger := ctrl.Log.WithName("webhook")
	server := &http.Server{
		Handler:           s.options.WebhookMux,
		BaseContext:       func(net.Listener) context.Context { return logr.NewContext(context.WithoutCancel(ctx), logger) },
		ConnContext:       withConnection,
		ConnState:         heard,
		ReadHeaderTimeout: firstBytes,
		WriteTimeout:      answered,
		IdleTimeout:       keptIdle,
		MaxHeaderBytes:    headerBytes,
		// Whoever reaches the server can make it fail a handshake, as often as they like.
		ErrorLog: log.New(debugLog{logger}, "", 0),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: requestsPerClient, MaxReadFrameSize: frameBytes,
			MaxReceiveBufferPerConnection: windowBytes, MaxReceiveBufferPerStream: windowBytes, WriteByteTimeout: firstBytes,
		},
	}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		err := server.Shutdown(draining)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
		ended <- err
	})
	defer stop()
	close(s.started)
	if err := server.Serve(tls.NewListener(listener, config)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("failed to serve webhooks: %w", err)
	}
	return <-ended
}

// StartedChecker returns a check that fails until the server answers a handshake.
func (s *LimitedServer) StartedChecker() healthz.Checker {
	return func(request *http.Request) error {
		select {
		case <-s.started:
		default:
			return errors.New("the webhook server has not been started yet")
		}
		ctx, cancel := context.WithTimeout(request.Context(), firstBytes)
		defer cancel()
		// Whether the certificate is the right one is the guard's to say.
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
		conn, err := dialer.DialContext(ctx, "tcp", s.address())
		if err != nil {
			return fmt.Errorf("failed to reach the webhook server: %w", err)
		}
		return conn.Close()
	}
}

type connectionKey struct{}

// withConnection lets handlers find the connection of their request.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if of := connectionOf(conn); of != nil {
		return context.WithValue(ctx, connectionKey{}, of)
	}
	return ctx
}

func heard(conn net.Conn, state http.ConnState) {
	if of := connectionOf(conn); of != nil && (state == http.StateActive || state == http.StateIdle) {
		of.heard()
	}
}

func connectionOf(conn net.Conn) *connection {
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	of, _ := secured.NetConn().(*connection)
	return of
}

// debugLog writes what net/http has to say into the log, at the level of debugging.
type debugLog struct{ to logr.Logger }

// Write implements io.Writer.
func (d debugLog) Write(line []byte) (int, error) {
	d.to.V(1).Info("Failed to serve a connection", "error", string(line))
	return len(line), nil
}
