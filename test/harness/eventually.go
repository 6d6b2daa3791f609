package harness

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// Eventually repeats a check, with so long in between, until it passes or the context ends, and returns the check's last
// error then.
func Eventually(ctx context.Context, interval time.Duration, check func(context.Context) error) error {
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		// A check that the end of the time interrupted says less than the one before it.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(interval):
		}
	}
}

// RetryOnConflict repeats a change, made of a read and a write, as long as somebody else writes in between, for up to five seconds. The
// back-offs of client-go give up within a fraction of one, in which a busy machine may let others write five times.
func RetryOnConflict(change func() error) error {
	return retry.RetryOnConflict(wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Steps: 10}, change)
}
