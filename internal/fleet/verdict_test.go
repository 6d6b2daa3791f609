package fleet

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestVerdict verifies when OLM may replace the operator: if no instance waits, rolls, or has
// failed. This is known only after all objects were seen. A single namespace can block the
// replacement for at most an hour, as a protection against a hostile tenant. Several namespaces
// block it for as long as they roll or have failed.
func TestVerdict(t *testing.T) {
	third, never := tenPercent, tenPercent
	third.FailureThreshold, never.FailureThreshold = 3, 0
	waits, failed, slow := Counts{Waiting: 9}, Counts{Waiting: 9, Failed: 9}, Counts{Waiting: 9, Overdue: 9}
	for name, test := range map[string]struct {
		policy     Policy
		namespaces by
		unseen     int
		// before and after are the reasons before and after HoldTime, or "" if none is reported.
		before, after string
	}{
		"idle":                 {tenPercent, by{}, 0, ReasonIdle, ReasonIdle},
		"starting":             {tenPercent, by{}, 1, "", ""},
		"one waits":            {tenPercent, by{"mallory": waits}, 0, ReasonRolling, ReasonReleased},
		"one rolls":            {tenPercent, by{"mallory": {Rolling: 1}}, 0, ReasonRolling, ReasonReleased},
		"one fails":            {tenPercent, by{"mallory": failed}, 0, ReasonStopped, ReasonReleased},
		"one is slow":          {tenPercent, by{"mallory": slow}, 0, ReasonRolling, ReasonReleased},
		"its canary fails":     {tenPercent, by{"mallory": {Failed: 1, failedCanary: 1}}, 0, ReasonStopped, ReasonReleased},
		"one fails, one rolls": {tenPercent, by{"mallory": failed, "shop": {Rolling: 1}}, 0, ReasonStopped, ReasonReleased},
		"one slow, one rolls":  {tenPercent, by{"mallory": slow, "shop": waits}, 0, ReasonRolling, ReasonReleased},
		"two roll":             {tenPercent, by{"mallory": {Rolling: 1}, "shop": waits}, 0, ReasonRolling, ReasonRolling},
		"two fail":             {tenPercent, by{"mallory": failed, "shop": failed}, 0, ReasonStopped, ReasonStopped},
		"two fail, three may":  {third, by{"mallory": failed, "shop": failed}, 0, ReasonStopped, ReasonReleased},
		"two fail, all may":    {never, by{"mallory": failed, "shop": failed}, 0, ReasonStopped, ReasonReleased},
		"not all were seen":    {tenPercent, by{"mallory": waits}, 1, ReasonRolling, ""},
	} {
		t.Run(name, func(t *testing.T) {
			state := stateOf(20, test.unseen, test.namespaces)
			failing := ""
			if state.Sum[Failed] > 0 {
				failing = "mallory/web"
			}
			alone, now := holds{}, time.Now()
			at := func(after time.Duration) verdict { return test.policy.verdict(state, failing, alone, now.Add(after)) }
			isTrue := func(of verdict) bool { return of.status == metav1.ConditionTrue }

			first := at(0)
			if first.reason != test.before || isTrue(first) != (test.before == ReasonIdle) {
				t.Errorf("%+v", first)
			}
			if last := at(HoldTime - 1); last != first {
				t.Errorf("%+v before the hour has passed, want %+v", last, first)
			}
			after := at(HoldTime)
			if after.reason != test.after || isTrue(after) != (test.after == ReasonIdle || test.after == ReasonReleased) {
				t.Errorf("%+v after an hour", after)
			}

			// An interruption gives the namespace no additional time.
			idle := test.policy.verdict(stateOf(0, 0, nil), "", alone, now.Add(HoldTime))
			if again := at(HoldTime + time.Second); idle.reason != ReasonIdle || again.reason != test.after {
				t.Errorf("%+v, and again %+v", idle, again)
			}
		})
	}
}
