package fleet

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the OperatorCondition Upgradeable.
const (
	ReasonIdle    = "Idle"
	ReasonRolling = "FleetRollout"
	ReasonStopped = "FleetRolloutStopped"
	// ReasonReleased (True) means that the last namespaces of the rollout have kept OLM from
	// replacing the operator for HoldTime.
	ReasonReleased = "FleetRolloutReleased"
)

// verdict is the status, the reason, and the message of the OperatorCondition.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// timed is a verdict that expires at ends, or never if ends is zero. If known is false, the Gate
// has not seen all objects yet, and the verdict is not reported.
type timed struct {
	verdict
	known bool
	ends  time.Time
}

// holds has, for each namespace, when it first kept OLM from replacing the operator without a
// second namespace that continues its rollout. It lasts as long as the process, so a namespace
// gains no time if it leaves the rollout and joins again.
type holds map[string]time.Time

// end returns when the last of some namespaces stops keeping OLM from replacing the operator.
func (h holds) end(namespaces []string, now time.Time) time.Time {
	var end time.Time
	for _, namespace := range namespaces {
		if h[namespace].IsZero() {
			h[namespace] = now
		}
		if due := h[namespace].Add(HoldTime); due.After(end) {
			end = due
		}
	}
	return end
}

// verdict decides whether OLM may replace the operator. OLM may not while several namespaces
// continue the rollout, or while failures stop the rollout for all. The last namespace that
// continues, and each namespace with a failed or overdue instance, block OLM for at most HoldTime.
// Messages contain no counts, because each change causes a write.
func (p Policy) verdict(s *State, failing string, alone holds, now time.Time) timed {
	no := func(reason, message string, ends time.Time) timed {
		return timed{verdict{metav1.ConditionFalse, reason, message}, true, ends}
	}
	switch {
	case p.Stopped(s):
		return no(ReasonStopped, "the rollout of this release has stopped in all namespaces because it failed for "+failing+
			". Correct, pause, or delete these instances, or set --fleet-rollout-failure-threshold", time.Time{})
	case s.going > 1:
		return no(ReasonRolling, "instances are being rolled to the changes of this release", time.Time{})
	case len(s.Namespaces) == 0:
		idle := verdict{metav1.ConditionTrue, ReasonIdle, "no instance waits for a rollout, the operator may be upgraded"}
		return timed{idle, s.Unseen == 0, time.Time{}}
	}

	left := slices.Collect(maps.Keys(s.Namespaces))
	end := alone.end(left, now)
	switch {
	case !end.After(now):
		message := fmt.Sprintf("the operator may be upgraded: instances of namespace %s still wait, roll, or fail, and one namespace defers "+
			"upgrades for %d minutes at most", firstOf(left), int(HoldTime.Minutes()))
		return timed{verdict{metav1.ConditionTrue, ReasonReleased, message}, s.Unseen == 0, time.Time{}}
	case failing != "":
		return no(ReasonStopped, "the rollout of this release failed for "+failing+", so no other instance of that namespace starts", end)
	}
	return no(ReasonRolling, "instances of one namespace are being rolled to the changes of this release", end)
}
