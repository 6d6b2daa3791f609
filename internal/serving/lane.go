package serving

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/lru"

	"github.com/example/nginx-operator/internal/untrusted"
)

const (
	// waitForMemory bounds the time that a review waits for memory.
	waitForMemory = 5 * time.Second
	// transferGrace and transferRate bound the transfers of a slow client while another review
	// waits. The client of a review with memory gets transferGrace to send the body and to read the
	// answer, and a second more for each transferRate bytes. Every lookAgain, a waiting review
	// checks for slow clients.
	transferGrace, transferRate = 500 * time.Millisecond, 16 << 20
	lookAgain                   = 100 * time.Millisecond
	// rememberedAddresses is more than the number of addresses that can have connections at the
	// same time.
	rememberedAddresses = 2 * maxConnections
)

// lane has the memory for reviews of one kind. A review waits for other reviews of its address
// first, so a client with many reviews only delays its own.
type lane struct {
	all        *semaphore.Weighted
	perAddress int64
	// addresses has the *share of each address.
	addresses *lru.Cache
	// turns share the processor between reviews with memory.
	turns *Turns
	// panics bounds the log lines of handlers that panic.
	panics *untrusted.Limit

	mu        sync.Mutex
	transfers map[*transfer]struct{}
}

// share is the memory that an address can use. Only one of its reviews at a time waits for memory of
// the lane, so that the addresses alternate.
type share struct{ memory, first *semaphore.Weighted }

func newLane(total, perAddress int64, turns *Turns) *lane {
	return &lane{
		all: semaphore.NewWeighted(total), perAddress: perAddress, addresses: lru.New(rememberedAddresses), turns: turns,
		panics: untrusted.NewLimit(), transfers: map[*transfer]struct{}{},
	}
}

// acquire takes memory for a review of an address. It aborts slow clients of other reviews until
// there is enough memory.
func (l *lane) acquire(ctx context.Context, host string, weight int64) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, waitForMemory)
	defer cancel()
	own := l.share(host)
	if err := own.memory.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	if !l.all.TryAcquire(weight) {
		go wait.UntilWithContext(ctx, l.abortSlowest, lookAgain)
		if err := l.waitFor(ctx, own, weight); err != nil {
			own.memory.Release(weight)
			return nil, err
		}
	}
	return func() {
		l.all.Release(weight)
		own.memory.Release(weight)
	}, nil
}

// waitFor takes memory after the other reviews of the address that wait for it.
func (l *lane) waitFor(ctx context.Context, own *share, weight int64) error {
	if err := own.first.Acquire(ctx, 1); err != nil {
		return err
	}
	defer own.first.Release(1)
	return l.all.Acquire(ctx, weight)
}

// share returns the share of an address.
func (l *lane) share(host string) *share {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own, found := l.addresses.Get(host); found {
		return own.(*share)
	}
	own := &share{memory: semaphore.NewWeighted(l.perAddress), first: semaphore.NewWeighted(1)}
	l.addresses.Add(host, own)
	return own
}

// transfer is the body and the answer of a review with memory.
type transfer struct {
	http.ResponseWriter
	io.Reader
	of    *lane
	abort func()
	// budget is the remaining time of the client. deadline is the end of it during a read or a
	// write. The lane's lock protects both.
	budget   time.Duration
	deadline time.Time
}

// begin adds a transfer. Nothing calls abort after end.
func (l *lane) begin(w http.ResponseWriter, body io.Reader, abort func()) (t *transfer, end func()) {
	t = &transfer{ResponseWriter: w, Reader: body, of: l, abort: abort, budget: transferGrace}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.transfers[t] = struct{}{}
	return t, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.transfers, t)
	}
}

func (t *transfer) Read(p []byte) (int, error) { return t.measure(t.Reader.Read, p) }

func (t *transfer) Write(p []byte) (int, error) { return t.measure(t.ResponseWriter.Write, p) }

// Unwrap lets http.ResponseController find the server's ResponseWriter.
func (t *transfer) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *transfer) measure(move func([]byte) (int, error), p []byte) (int, error) {
	t.of.mu.Lock()
	t.deadline = time.Now().Add(t.budget)
	t.of.mu.Unlock()
	n, err := move(p)
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.budget = time.Until(t.deadline) + time.Duration(n)*time.Second/transferRate
	t.deadline = time.Time{}
	return n, err
}

// abortSlowest aborts the transfer that exceeds its deadline the most, if any.
func (l *lane) abortSlowest(context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var slowest *transfer
	for t := range l.transfers {
		if !t.deadline.IsZero() && (slowest == nil || t.deadline.Before(slowest.deadline)) {
			slowest = t
		}
	}
	if slowest != nil && time.Now().After(slowest.deadline) {
		slowest.abort()
		delete(l.transfers, slowest)
	}
}
