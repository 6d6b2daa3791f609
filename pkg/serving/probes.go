package serving

import (
	"context"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

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
