package untrusted

import (
	"time"

	"golang.org/x/time/rate"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
)

// Rates bounds how often each address can cause something.
type Rates struct {
	perSecond rate.Limit
	burst     int
	remember  time.Duration
	limiters  *utilcache.LRUExpireCache
}

// NewRates returns Rates of some requests per second, and a burst, for each address. They forget an
// address after a time, which has to be longer than the burst takes to refill, or if there are more
// addresses than a maximum.
func NewRates(perSecond float64, burst, addresses int, remember time.Duration) *Rates {
	return &Rates{rate.Limit(perSecond), burst, remember, utilcache.NewLRUExpireCache(addresses)}
}

// Allow reports whether an address may cause another one now.
func (r *Rates) Allow(address string) bool {
	limiter, found := r.limiters.Get(address)
	if !found {
		limiter = rate.NewLimiter(r.perSecond, r.burst)
		r.limiters.Add(address, limiter, r.remember)
	}
	return limiter.(*rate.Limiter).Allow()
}
