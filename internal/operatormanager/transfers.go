package operatormanager

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// slowTransfer is how long a request may read its body or write its answer once another one waits for memory. The largest takes the
	// API server a fraction of a second.
	slowTransfer = 3 * time.Second
	// lookAgain is how often those that wait look for one.
	lookAgain = 250 * time.Millisecond
)

// transfers are the requests that wait for their clients, and hold memory meanwhile.
type transfers struct {
	mu  sync.Mutex
	all map[*transfer]struct{}
}

// transfer is one of them.
type transfer struct {
	since time.Time
	abort func()
}

// begin notes that a request waits for its client from now on, until the function that it returns is called. After that, abort is not
// called any more.
func (t *transfers) begin(abort func()) (end func()) {
	begun := &transfer{time.Now(), abort}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all[begun] = struct{}{}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.all, begun)
	}
}

// abortSlowest ends the transfer that has gone on for the longest, where that is too long.
func (t *transfers) abortSlowest(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var slowest *transfer
	for one := range t.all {
		if now.Sub(one.since) >= slowTransfer && (slowest == nil || one.since.Before(slowest.since)) {
			slowest = one
		}
	}
	if slowest != nil {
		slowest.abort()
		delete(t.all, slowest)
	}
}

// acquire takes memory, and has who is slow make room for it: who sends a body byte by byte, or reads no answer, would keep it from
// everybody else for as long as a request may take.
func (t *transfers) acquire(ctx context.Context, memory *semaphore.Weighted, weight int64) error {
	if memory.TryAcquire(weight) {
		return nil
	}
	acquired := make(chan error, 1)
	go func() { acquired <- memory.Acquire(ctx, weight) }()
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		select {
		case err := <-acquired:
			return err
		case now := <-ticker.C:
			t.abortSlowest(now)
		}
	}
}

// answer is a transfer from the first byte of an answer that is written.
type answer struct {
	http.ResponseWriter

	of    *transfers
	abort func()
	end   func()
}

// Write implements http.ResponseWriter.
func (a *answer) Write(text []byte) (int, error) {
	if a.end == nil {
		a.end = a.of.begin(a.abort)
	}
	return a.ResponseWriter.Write(text)
}

// Unwrap is what http.ResponseController looks for.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// done ends the transfer.
func (a *answer) done() {
	if a.end != nil {
		a.end()
	}
}
