package harness

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"golang.org/x/sync/errgroup"
)

// Report prints one measurement in the format of `make bench`.
func Report(metric string, value float64, unit string) {
	fmt.Printf("%s: %s %s\n", metric, strconv.FormatFloat(value, 'f', -1, 64), unit)
}

// Round rounds a value to two decimal places.
func Round(value float64) float64 { return math.Round(value*100) / 100 }

// InParallel calls a function for 0 to n-1, with at most workers calls at a time, and returns the
// first error. After an error, it makes no more calls and cancels the context of the running
// calls.
func InParallel(ctx context.Context, workers, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range n {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(ctx, i)
		})
	}
	return group.Wait()
}
