package serving

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/pkg/untrusted"
)

const (
	// waitForMemory bounds the time that a review waits for memory.
	waitForMemory = 5 * time.Second
	// The client of a review with memory gets transferGrace to send the body and to read the
	// answer, and a second more for each transferRate bytes. Every lookAgain, a client without time
	// is disconnected if another review waits for memory.
	transferGrace, transferRate = 500 * time.Millisecond, 16 << 20
	lookAgain                   = 100 * time.Millisecond
	// rememberedAddresses is more than the number of addresses with connections at the same time.
	rememberedAddresses = 2 * maxConnections
)

type lane struct {
	memory *semaphore.Weighted
	// waiting is the number of reviews that wait for memory.
	waiting atomic.Int64
	mu      sync.Mutex
	// addresses has a *semaphore.Weighted of 1 for each address, so that the addresses alternate.
	addresses *lru.Cache
	// turns share the processor between reviews with memory.
	turns *Turns
	// panics bounds the log lines of handlers that panic.
	panics *untrusted.Limit
}

func newLane(total int64, turns *Turns) *lane {
	return &lane{
		memory: semaphore.NewWeighted(total), addresses: lru.New(rememberedAddresses),
		turns: turns, panics: untrusted.NewLimit(),
	}
}

// acquire takes memory for a review, after the other reviews of the address that wait for it.
func (l *lane) acquire(ctx context.Context, host string, weight int64) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, waitForMemory)
	defer cancel()
	l.mu.Lock()
	first := getOrAdd(l.addresses, host, semaphore.NewWeighted(1))
	l.mu.Unlock()

	if err := first.Acquire(ctx, 1); err != nil {
		return nil, err
	}

	defer first.Release(1)
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	if err := l.memory.Acquire(ctx, weight); err != nil {
		return nil, err
	}

	return func() { l.memory.Release(weight) }, nil
}

// getOrAdd returns the value of an address, or adds one. The caller holds a lock.
func getOrAdd[V any](values *lru.Cache, host string, added *V) *V {
	if known, isKnown := values.Get(host); isKnown {
		return known.(*V)
	}
	values.Add(host, added)
	return added
}

func (l *lane) serve(next http.Handler, w http.ResponseWriter, r *http.Request, first []byte) {
	defer l.recoverPanic(w, r)
	client := &transfer{w, r.Body, l, connectionOf(r.Context()).abort, transferGrace}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(first), client))
	l.turns.serve(whileBusy(next), client, r)
}

// recoverPanic answers with an HTTP error if a handler panics, and logs the complete stack.
func (l *lane) recoverPanic(w http.ResponseWriter, r *http.Request) {
	if panicked := recover(); panicked != nil {
		l.panics.Logger(log.FromContext(r.Context())).Error(fmt.Errorf("panic: %v", panicked), "Failed to answer a review",
			"path", r.URL.Path, "stack", untrusted.Own(debug.Stack()))
		http.Error(w, "failed to answer the review; see the log of the operator", http.StatusInternalServerError)
	}
}

// transfer is the body and the answer of a review with memory. It resets the connection when the
// client has no time left and another review waits. A deadline would not suffice: after a failed
// write, TLS waits five seconds for the client.
type transfer struct {
	http.ResponseWriter
	io.Reader
	of    *lane
	reset func()
	// left is the time for which the client can still make the handler wait.
	left time.Duration
}

func (t *transfer) Read(p []byte) (int, error) { return t.measure(t.Reader.Read, p) }

func (t *transfer) Write(p []byte) (int, error) { return t.measure(t.ResponseWriter.Write, p) }

// Unwrap lets http.ResponseController find the server's ResponseWriter.
func (t *transfer) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *transfer) measure(move func([]byte) (int, error), p []byte) (int, error) {
	moving, stop := context.WithCancel(context.Background())
	defer stop()
	defer time.AfterFunc(t.left, func() { t.resetForOthers(moving) }).Stop()
	began := time.Now()
	n, err := move(p)
	t.left += time.Duration(n)*time.Second/transferRate - time.Since(began)
	return n, err
}

// resetForOthers resets the connection as soon as another review waits, until the move ends.
func (t *transfer) resetForOthers(moving context.Context) {
	switch {
	case moving.Err() != nil:
	case t.of.waiting.Load() > 0:
		t.reset()
	default:
		time.AfterFunc(lookAgain, func() { t.resetForOthers(moving) })
	}
}
