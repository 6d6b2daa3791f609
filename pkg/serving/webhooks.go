package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/pkg/review"
)

const (
	// small is the maximum length of reviews in the lane for small reviews, and the part of a
	// larger body that must arrive before the review reserves memory.
	small = 64 << 10
	// largestAdmission is two objects of 3 MiB, the API server's limit, and the envelope.
	// largestConversion is one page of 10,000 objects of 6 KiB.
	largestAdmission, largestConversion = 7 << 20, 60 << 20
	// decoded is the memory of a review in multiples of its length, and leastDecoded the least.
	decoded, leastDecoded = 8, 32 << 10
	// residentConversion is the memory of the largest conversion, of one object at a time.
	residentConversion = 32 << 20
	// readAdmission and readConversion bound the time to read, and to convert, a body.
	readAdmission, readConversion = 10 * time.Second, 30 * time.Second
)

// Webhooks is the server of the webhooks. It continues to answer after the manager has stopped and
// released the Lease, until the nodes have removed the Pod from the Service.
type Webhooks struct {
	webhook.Server
	port           Port
	conversionPath string
	linger         time.Duration
	lingers        atomic.Bool
	// small, admission, and conversion have the memory for reviews.
	small, admission, conversion *lane
	ended                        chan error
}

// NewWebhooks returns a server at an address (host:port). A handler at the conversion path gets a
// body of at most 60 MiB, and any other handler 7 MiB. Reviews larger than 64 KiB have turns of
// their own, so that no small one waits for them.
func NewWebhooks(address string, config *tls.Config, turns *Turns, conversionPath string, linger time.Duration) *Webhooks {
	mux, slow := http.NewServeMux(), NewTurns()
	s := &Webhooks{
		Server:         webhook.NewServer(webhook.Options{WebhookMux: mux}),
		conversionPath: conversionPath,
		linger:         linger,
		small:          newLane(32<<20, turns),
		admission:      newLane(decoded*largestAdmission, slow),
		conversion:     newLane(2*residentConversion, slow),
		ended:          make(chan error, 1),
	}

	s.port = Port{Name: "webhook", Address: address, TLS: config, Turns: turns, Handler: s.closeWhileItLingers(mux)}
	return s
}

// closeWhileItLingers makes clients that are answered during a shutdown open their next connection
// to another replica, so that no request is lost when the server ends.
func (s *Webhooks) closeWhileItLingers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.lingers.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// Register adds a handler. That of an admission.Webhook gets no review that exceeds pkg/bounds.
func (s *Webhooks) Register(path string, hook http.Handler) {
	if path == s.conversionPath {
		s.Server.Register(path, s.limit(hook, s.conversion, largestConversion, residentConversion, readConversion))
		return
	}
	if admitting, ok := hook.(*admission.Webhook); ok {
		hook = review.BoundedHandler(admitting.Handler)
	}
	s.Server.Register(path, s.limit(hook, s.admission, largestAdmission, decoded*largestAdmission, readAdmission))
}

// limit calls the handler, while the body arrives, if there is memory for the review.
func (s *Webhooks) limit(next http.Handler, large *lane, longest, resident int64, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength < 0 {
			http.Error(w, "the request needs a Content-Length", http.StatusLengthRequired)
			return
		}

		if r.ContentLength > longest {
			http.Error(w, fmt.Sprintf("the body has %d bytes, the limit is %d; list fewer objects at a time (kubectl --chunk-size)",
				r.ContentLength, longest), http.StatusRequestEntityTooLarge)
			return
		}

		EndTurn(r.Context())
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout))
		first := make([]byte, min(r.ContentLength, small))
		if _, err := io.ReadFull(r.Body, first); err != nil {
			http.Error(w, "failed to read the body: "+err.Error(), http.StatusRequestTimeout)
			return
		}

		into, weight := large, min(max(r.ContentLength*decoded, leastDecoded), resident)
		if r.ContentLength <= small {
			into = s.small
		}

		release, err := into.acquire(r.Context(), hostOf(r.RemoteAddr), weight)
		if err != nil {
			refuse(w, "too many reviews are being answered; try again later")
			return
		}

		defer release()
		into.serve(next, w, r, first)
	})
}

// Start serves until the context ends or serving fails.
func (s *Webhooks) Start(ctx context.Context) error {
	server, err := s.port.Listen(ctx)
	if err != nil {
		return err
	}

	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() { s.ended <- errors.Join(server.Start(serving), server.Server.Close()) }()
	select {
	case err := <-s.ended:
		stop()
		s.ended <- err // for Wait
		return err
	case <-ctx.Done():
		s.lingers.Store(true)
		time.AfterFunc(s.linger, stop)
		return nil
	}
}

// Wait returns after the server has ended. Call it only after Start.
func (s *Webhooks) Wait() error { return <-s.ended }

// StartedChecker returns a check that fails until the server answers a handshake.
func (s *Webhooks) StartedChecker() healthz.Checker {
	return func(request *http.Request) error {
		// The guard checks the certificate.
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
		conn, err := dialer.DialContext(request.Context(), "tcp", s.port.Address)
		if err != nil {
			return fmt.Errorf("failed to reach the webhook server: %w", err)
		}
		return conn.Close()
	}
}
