package rollout

import (
	"fmt"
	"testing"
)

// TestStateOfEveryPair verifies the state for each pair of facts.
func TestStateOfEveryPair(t *testing.T) {
	blocked, waits := facts{blocked: true}, facts{waits: true}
	failed, failedButKept := facts{failed: true, automaticRollback: true}, facts{failed: true}
	for _, test := range []struct {
		a, b facts
		want State
	}{
		{facts{}, facts{}, StateCurrent},
		{facts{}, facts{automaticRollback: true}, StateCurrent},
		{facts{}, blocked, StateBlocked},
		{facts{}, waits, StateWaiting},
		{facts{}, failed, StateRolledBack},
		{facts{}, failedButKept, StateCurrent},
		{blocked, waits, StateBlocked},
		{blocked, failed, StateBlocked},
		{blocked, failedButKept, StateBlocked},
		{waits, failed, StateWaiting},
		{waits, failedButKept, StateWaiting},
		{failed, failedButKept, StateRolledBack},
	} {
		both := facts{
			blocked: test.a.blocked || test.b.blocked, waits: test.a.waits || test.b.waits,
			failed: test.a.failed || test.b.failed, automaticRollback: test.a.automaticRollback || test.b.automaticRollback,
		}
		t.Run(fmt.Sprintf("%+v", both), func(t *testing.T) {
			if got := both.state(); got != test.want {
				t.Errorf("state %d, want %d", got, test.want)
			}
		})
	}
}
