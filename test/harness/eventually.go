package harness

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// Eventually repeats a check until it passes. The first pauses between checks are shorter than the
// interval, so that a short wait ends soon, and a long wait causes few requests. If the context
// ends first, Eventually returns the last error of the check.
func Eventually(ctx context.Context, interval time.Duration, check func(context.Context) error) error {
	var last error
	for pause := interval / 8; ; pause = min(pause*3/2, interval) {
		err := check(ctx)
		if err == nil {
			return nil
		}
		// The error of an interrupted check is less useful than the error before it.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(pause):
		}
	}
}

// RetryOnConflict repeats a read and write for up to five seconds as long as the write conflicts
// with other writes. The default backoff of client-go gives up within a fraction of a second. On a
// busy machine, five conflicts in that time are possible.
func RetryOnConflict(change func() error) error {
	return retry.RetryOnConflict(wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Steps: 10}, change)
}
