// Package serving has the operator's three ports: webhooks, metrics, and probes. Any Pod can
// connect to them, so each port bounds the connections, the memory, and the time of a client.
package serving

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/example/nginx-operator/pkg/certificates"
	"github.com/example/nginx-operator/pkg/untrusted"
)

const (
	// firstBytes bounds the handshake, and then the header of each request.
	firstBytes = 10 * time.Second
	// answered bounds a request. The API server waits for at most 30 seconds.
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

// An unknown token costs the API server a TokenReview and, if valid, another request.
const (
	// addressRate and addressBurst bound the requests per second of an address with unknown tokens.
	addressRate, addressBurst = 1, 5
	// strangersRate, strangersBurst, and strangersAtOnce bound those of all unknown addresses.
	strangersRate, strangersBurst, strangersAtOnce = 10, 20, 4
	// tokenKnown is the time that a token stays known after an allowed request, as in the
	// authenticator's cache. addressKnown is longer than the time between two scrapes.
	tokenKnown, addressKnown = time.Minute, 15 * time.Minute
)

type authLimit struct {
	// known has the tokens and the addresses of allowed requests.
	known      *utilcache.LRUExpireCache
	perAddress *untrusted.Rates
	strangers  *rate.Limiter
	atOnce     *semaphore.Weighted
}

// NewMetrics returns the handler of GET /metrics for clients that a filter authorizes.
func NewMetrics(filter func(http.Handler) (http.Handler, error), metrics http.Handler) (http.Handler, error) {
	limit := &authLimit{
		known:      utilcache.NewLRUExpireCache(2 * rememberedAddresses),
		perAddress: untrusted.NewRates(addressRate, addressBurst, rememberedAddresses, addressKnown),
		strangers:  rate.NewLimiter(strangersRate, strangersBurst), atOnce: semaphore.NewWeighted(strangersAtOnce),
	}

	filtered, err := filter(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit.known.Add(r.Context().Value(tokenKey{}), true, tokenKnown)
		limit.known.Add(hostOf(r.RemoteAddr), true, addressKnown)
		metrics.ServeHTTP(w, r)
	}))
	if err != nil {
		return nil, fmt.Errorf("failed to create the filter of the metrics: %w", err)
	}

	mux := http.NewServeMux()
	mux.Handle("GET /metrics", whileBusy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The authenticator removes the header of a token that it accepts.
		token := tokenOf(r)
		release, allowed := limit.acquire(r, token)
		defer release()
		if !allowed {
			refuse(w, "too many requests with unknown tokens; try again later")
			return
		}

		EndTurn(r.Context()) // for the API server's TokenReview
		filtered.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tokenKey{}, token)))
	})))

	return mux, nil
}

type tokenKey struct{}

func (l *authLimit) acquire(r *http.Request, token [sha256.Size]byte) (release func(), allowed bool) {
	release = func() {}
	if _, known := l.known.Get(token); known {
		return release, true
	}

	host := hostOf(r.RemoteAddr)
	if !l.perAddress.Allow(host) {
		return release, false
	}
	if _, known := l.known.Get(host); known {
		return release, true
	}
	if !l.atOnce.TryAcquire(1) {
		return release, false
	}

	return func() { l.atOnce.Release(1) }, l.strangers.Allow()
}

func tokenOf(r *http.Request) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q", []any{r.Header["Authorization"], r.Header["Sec-Websocket-Protocol"]}))
}

// MetricsTLS returns a configuration with tls.crt and tls.key of a directory, reloaded until the
// context ends, or with a self-signed certificate if the directory is "" or has none.
func MetricsTLS(ctx context.Context, dir string) (*tls.Config, error) {
	if dir != "" {
		watcher, err := certwatcher.New(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		if err == nil {
			go func() { _ = watcher.Start(ctx) }() // it logs its errors
			return &tls.Config{GetCertificate: watcher.GetCertificate}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("failed to read the certificate for the metrics: %w", err)
		}
	}

	data, err := certificates.New([]string{"localhost", "127.0.0.1"}, certificates.Lifetime)
	if err != nil {
		return nil, fmt.Errorf("failed to create a certificate for the metrics: %w", err)
	}

	own, err := certificates.Load(data)
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own, nil }}, err
}
