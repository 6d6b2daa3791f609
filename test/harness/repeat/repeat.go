// Package repeat calls functions repeatedly and counts the results.
package repeat

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Counts are the results of repeated calls.
type Counts struct {
	// Total is the number of finished calls. Failed is the number of calls that returned an error.
	Total, Failed int
	// Slowest is the longest duration of a call.
	Slowest time.Duration
	// First and Last are the first and the last error, or nil if all calls succeeded. FirstAfter
	// and LastAfter are the times from the start until these errors.
	First, Last           error
	FirstAfter, LastAfter time.Duration
}

// AtLeast returns an error if fewer than n calls succeeded.
func (c Counts) AtLeast(n int) error {
	if done := c.Total - c.Failed; done < n {
		return errors.Join(fmt.Errorf("%d of %d calls succeeded, want at least %d", done, c.Total, n), c.Last)
	}
	return nil
}

// Calls calls functions repeatedly until it is stopped, and counts the results.
type Calls struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	began   time.Time

	mu     sync.Mutex
	counts Counts
}

// Start starts to call each function repeatedly, in a goroutine of its own and with a pause after
// each call. n counts the calls from 0. Stop or the end of the context ends it. Running calls
// finish, so that stopping does not count as a failure.
func Start(ctx context.Context, pause time.Duration, things ...func(ctx context.Context, n int) error) *Calls {
	ctx, cancel := context.WithCancel(ctx)
	r := &Calls{stop: cancel, began: time.Now()}
	for _, thing := range things {
		r.running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				began := time.Now()
				err := thing(context.WithoutCancel(ctx), n)
				r.record(time.Since(began), err)
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	return r
}

func (r *Calls) record(took time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Total++
	r.counts.Slowest = max(r.counts.Slowest, took)
	if err == nil {
		return
	}
	after := time.Since(r.began)
	if r.counts.Failed == 0 {
		r.counts.First, r.counts.FirstAfter = err, after
	}
	r.counts.Failed++
	r.counts.Last, r.counts.LastAfter = err, after
}

// Counts returns the results so far.
func (r *Calls) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// Stop waits for the running calls and returns the results. It can be called more than once.
func (r *Calls) Stop() Counts {
	r.stop()
	r.running.Wait()
	return r.Counts()
}
