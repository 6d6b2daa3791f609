package harness

import (
	"context"
	"time"
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
