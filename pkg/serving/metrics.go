package serving

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/example/nginx-operator/pkg/certificates"
	"github.com/example/nginx-operator/pkg/untrusted"
)

// A request with an unknown token costs the API server a TokenReview, and a SubjectAccessReview if
// the token is valid.
const (
	// addressRate and addressBurst bound the requests per second of an address with unknown tokens.
	addressRate, addressBurst = 1, 5
	// strangersRate, strangersBurst, and strangersAtOnce bound those of all unknown addresses.
	strangersRate, strangersBurst, strangersAtOnce = 10, 20, 4
	// tokenKnown is the time that a token stays known after an allowed request, as in the
	// authenticator's cache. addressKnown is longer than the time between two scrapes.
	tokenKnown, addressKnown = time.Minute, 15 * time.Minute
)

// authLimit bounds the requests that reach an authenticator.
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

// tokenKey is the key of a request's token digest in its context.
type tokenKey struct{}

// acquire reports whether a request is allowed to cause a TokenReview.
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

// tokenOf returns a digest of the headers that can contain a token.
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
