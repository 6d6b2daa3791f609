package main

// This file waits, never without a bound.

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// finalError ends a poll at once.
type finalError struct{ err error }

func (e finalError) Error() string { return e.err.Error() }
func (e finalError) Unwrap() error { return e.err }

// poll calls check until it returns nil or a finalError, and returns its last error when the time is up.
func poll(ctx context.Context, timeout, interval time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		// A check that was cut off knows less than the one before.
		if last != nil && ctx.Err() != nil {
			err = last
		}
		last = err
		if final := (finalError{}); errors.As(err, &final) {
			return final.err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up after %s: %w", timeout, err)
		case <-ticker.C:
		}
	}
}
