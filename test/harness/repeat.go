package harness

import (
	"context"
	"sync"
	"time"
)

// Counts is what came of something that was done again and again.
type Counts struct {
	// Total were begun and ended, Failed of them with an error.
	Total, Failed int
	// Slowest is how long the longest took.
	Slowest time.Duration
	// First and Last are the first and the last failure, nil where there was none; FirstAfter and LastAfter say how long after
	// the beginning they were.
	First, Last           error
	FirstAfter, LastAfter time.Duration
}

// Repeated does things again and again until it is stopped, and counts.
type Repeated struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	began   time.Time

	mu     sync.Mutex
	counts Counts
}

// Repeat begins to do things, each on its own and with a pause after each time; the number counts the times from 0. It ends
// with Stop, or with the context. What has begun is finished, so that the end is not counted as a failure.
func Repeat(ctx context.Context, pause time.Duration, things ...func(ctx context.Context, n int) error) *Repeated {
	ctx, cancel := context.WithCancel(ctx)
	r := &Repeated{stop: cancel, began: time.Now()}
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

func (r *Repeated) record(took time.Duration, err error) {
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

// Counts returns what came of it so far.
func (r *Repeated) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// Stop ends it once all that has begun is finished, and returns what came of it. It may be called again.
func (r *Repeated) Stop() Counts {
	r.stop()
	r.running.Wait()
	return r.Counts()
}
