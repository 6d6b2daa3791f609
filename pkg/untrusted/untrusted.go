// Package untrusted makes text of unknown senders safe for the log: short, on one line, and
// rate-limited. Any Pod can post to the webhooks, so a stranger can choose user names, UIDs, and
// error messages.
package untrusted

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
)

const (
	// maxText bounds a text in bytes. Names of users and objects, and UIDs, are shorter.
	maxText = 256
	// linesPerSecond and linesAtOnce bound the log of one Limit.
	linesPerSecond = 1
	linesAtOnce    = 20
)

// Text escapes control characters and quotation marks as Go does, and truncates.
func Text(text string) string {
	cut := len(text) > maxText
	if cut {
		text = strings.ToValidUTF8(text[:maxText], "")
	}

	quoted := strconv.Quote(text)
	quoted = quoted[1 : len(quoted)-1]
	if cut {
		quoted += "..."
	}
	return quoted
}

// Own is text from the operator itself, such as a stack. A logger writes it unchanged.
type Own string

// Limit bounds the lines that its loggers write: 20 at once, then one per second.
type Limit struct {
	limiter *rate.Limiter
	dropped atomic.Int64
}

// NewLimit returns an unused Limit.
func NewLimit() *Limit {
	return &Limit{limiter: rate.NewLimiter(rate.Every(time.Second/linesPerSecond), linesAtOnce)}
}

// Logger returns a logger that escapes, truncates, and rate-limits everything that it writes. A
// line reports how many lines were dropped before it.
func (l *Limit) Logger(base logr.Logger) logr.Logger {
	if base.GetSink() == nil {
		return base
	}
	return logr.New(sink{base.WithCallDepth(1).GetSink(), l})
}

type sink struct {
	to    logr.LogSink
	limit *Limit
}

var _ logr.CallDepthLogSink = sink{}

// Init implements logr.LogSink. The inner sink is initialized already.
func (sink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (s sink) Enabled(level int) bool { return s.to.Enabled(level) }

// Info implements logr.LogSink.
func (s sink) Info(level int, message string, keysAndValues ...any) {
	if more, allowed := s.limit.take(); allowed {
		s.to.Info(level, Text(message), append(bounded(keysAndValues), more...)...)
	}
}

// Error implements logr.LogSink.
func (s sink) Error(err error, message string, keysAndValues ...any) {
	if more, allowed := s.limit.take(); allowed {
		if err != nil {
			err = errors.New(Text(err.Error()))
		}
		s.to.Error(err, Text(message), append(bounded(keysAndValues), more...)...)
	}
}

// WithValues implements logr.LogSink.
func (s sink) WithValues(keysAndValues ...any) logr.LogSink {
	return sink{s.to.WithValues(bounded(keysAndValues)...), s.limit}
}

// WithName implements logr.LogSink.
func (s sink) WithName(name string) logr.LogSink { return sink{s.to.WithName(name), s.limit} }

// WithCallDepth implements logr.CallDepthLogSink.
func (s sink) WithCallDepth(depth int) logr.LogSink {
	if deeper, ok := s.to.(logr.CallDepthLogSink); ok {
		return sink{deeper.WithCallDepth(depth), s.limit}
	}
	return s
}

// take reports whether a line may be written, and returns its additional keys and values.
func (l *Limit) take() (more []any, allowed bool) {
	if !l.limiter.Allow() {
		l.dropped.Add(1)
		return nil, false
	}
	if dropped := l.dropped.Swap(0); dropped > 0 {
		return []any{"droppedLines", dropped}, true
	}
	return nil, true
}

// bounded returns keys and values with escaped and truncated texts. Numbers stay numbers.
func bounded(keysAndValues []any) []any {
	out := make([]any, len(keysAndValues))
	for i, value := range keysAndValues {
		switch value := value.(type) {
		case nil, bool, int, int32, int64, float64, time.Duration:
			out[i] = value
		case string:
			out[i] = Text(value)
		case Own:
			out[i] = string(value)
		default:
			out[i] = Text(fmt.Sprint(value))
		}
	}

	return out
}

// Rates bounds how often each address can cause something.
type Rates struct {
	perSecond rate.Limit
	burst     int
	remember  time.Duration
	limiters  *utilcache.LRUExpireCache
}

// NewRates returns Rates with a burst for each address. They forget an address after a time, which
// must be longer than the burst takes to refill, or if there are too many addresses.
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
