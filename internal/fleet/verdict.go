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

// verdict is the status, the reason, and the message of the OperatorCondition. The zero value is
// not reported.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// holds has, for each namespace, when it first kept OLM from replacing the operator without a
// second namespace that continues its rollout. It lasts as long as the process, so a namespace
// gains no time if it leaves the rollout and joins again.
type holds map[string]time.Time

// verdict decides whether OLM may replace the operator. OLM may not while several namespaces
// continue the rollout, or while failures stop the rollout for all. The last namespace that
// continues, and each namespace with a failed or overdue instance, block OLM for at most HoldTime.
// OLM may only after the Gate has seen all objects. Messages contain no counts, because each change
// causes a write.
func (p Policy) verdict(s *State, failing string, alone holds, now time.Time) verdict {
	const no, yes = metav1.ConditionFalse, metav1.ConditionTrue
	switch {
	case p.Stopped(s):
		return verdict{no, ReasonStopped, "the rollout of this release has stopped in all namespaces because it failed for " +
			failing + ". Correct, pause, or delete these instances, or set --fleet-rollout-failure-threshold"}
	case s.going > 1:
		return verdict{no, ReasonRolling, "instances are being rolled to the changes of this release"}
	}

	released := true
	for namespace := range s.Namespaces {
		if alone[namespace].IsZero() {
			alone[namespace] = now
		}
		released = released && now.Sub(alone[namespace]) >= HoldTime
	}
	switch {
	case released && s.Unseen > 0:
		return verdict{}
	case len(s.Namespaces) == 0:
		return verdict{yes, ReasonIdle, "no instance waits for a rollout, the operator may be upgraded"}
	case released:
		left := firstOf(slices.Collect(maps.Keys(s.Namespaces)))
		return verdict{yes, ReasonReleased, fmt.Sprintf("the operator may be upgraded: instances of namespace %s still wait, roll, "+
			"or fail, and one namespace defers upgrades for %d minutes at most", left, int(HoldTime.Minutes()))}
	case failing != "":
		return verdict{no, ReasonStopped,
			"the rollout of this release failed for " + failing + ", so no other instance of that namespace starts"}
	}
	return verdict{no, ReasonRolling, "instances of one namespace are being rolled to the changes of this release"}
}
