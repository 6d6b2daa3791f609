package repeat

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestCalls checks that calls are counted and that Stop lets running calls finish.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong := errors.New("wrong")
		r := Start(t.Context(), 9*time.Second,
			func(ctx context.Context, n int) error {
				time.Sleep(time.Second)
				if n == 1 || n == 2 {
					return wrong
				}
				return ctx.Err()
			},
			func(context.Context, int) error { time.Sleep(2 * time.Second); return nil })
		// The first function is in its fourth call.
		time.Sleep(30*time.Second + 500*time.Millisecond)
		if got := r.Counts(); got.Total != 6 || got.Failed != 2 {
			t.Errorf("meanwhile %+v", got)
		}
		if enough, tooFew := r.Counts().AtLeast(4), r.Counts().AtLeast(5); enough != nil || !errors.Is(tooFew, wrong) {
			t.Errorf("at least 4: %v, at least 5: %v", enough, tooFew)
		}
		want := Counts{
			Total: 7, Failed: 2, Slowest: 2 * time.Second,
			First: wrong, Last: wrong, FirstAfter: 11 * time.Second, LastAfter: 21 * time.Second,
		}
		if got := r.Stop(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		time.Sleep(time.Minute)
		if got := r.Stop(); got != want {
			t.Errorf("after its end %+v", got)
		}
	})
}
