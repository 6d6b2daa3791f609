package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestPoll(t *testing.T) {
	calls := 0
	err := Poll(context.Background(), time.Minute, time.Millisecond, func(context.Context) error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("got %v after %d calls", err, calls)
	}
	fatal := errors.New("fatal")
	err = Poll(context.Background(), time.Minute, time.Millisecond, func(context.Context) error { return FinalError{fatal} })
	if !errors.Is(err, fatal) {
		t.Errorf("a final error has to end it at once, got %v", err)
	}
	err = Poll(context.Background(), 20*time.Millisecond, time.Millisecond, func(ctx context.Context) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.New("the reason")
	})
	if err == nil || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("the error has to say why it was not done, got %v", err)
	}
}

func TestUnavailableIsOneLine(t *testing.T) {
	reason := errors.New("reason")
	err := Unavailable("no %s: %w", "room", reason)
	if !errors.Is(err, reason) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "CLUSTER=external") {
		t.Errorf("got %v", err)
	}
}
