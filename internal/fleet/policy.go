// Package fleet limits how many instances roll at a time after an operator upgrade changes them,
// and shares the slots between namespaces. Each reconcile determines the place of its instance from
// the cluster and reports it to the Gate, which counts the instances. The Gate stores nothing else,
// so after a restart it admits no instance until each object was reconciled once. For the reasons,
// see docs/adr/0030-fleet-rollout.md and docs/adr/0042-fleet-rollout-fairness.md.
package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Place is the place of an instance in the fleet rollout.
type Place int

// The places. A namespace starts its instances in the order of the waiting places.
const (
	// Unknown means that a reconcile did not determine the place.
	Unknown Place = iota
	// WaitingCanary waits, serves, and has the label of canaries.
	WaitingCanary
	// Waiting waits and serves.
	Waiting
	// WaitingUnready waits and did not serve before, so its failure shows nothing about the release.
	WaitingUnready
	// Rolling has started, holds a slot, and is not Ready yet.
	Rolling
	// Overdue has held its slot for SlotTime, and lost it. Only the Gate assigns this place.
	Overdue
	// Failed has started, and its rollout fails or was rolled back.
	Failed
	// Outside takes no part. The instance already has the release's change, or its user has
	// changed, paused, or broken it.
	Outside

	// rollingCanary and failedCanary count the canaries among Rolling and Failed again.
	rollingCanary
	failedCanary
	places
)

// Waits reports whether an instance in this place waits for a slot.
func (p Place) Waits() bool { return p >= WaitingCanary && p <= WaitingUnready }

// Counts has the number of instances in each place, of one namespace or of all namespaces.
type Counts [places]int

func (c Counts) waiting() int { return c[WaitingCanary] + c[Waiting] + c[WaitingUnready] }

func (c *Counts) add(instance member, step int) {
	c[instance.place] += step
	switch {
	case !instance.canary:
	case instance.place == Rolling:
		c[rollingCanary] += step
	case instance.place == Failed:
		c[failedCanary] += step
	}
}

func (c *Counts) plus(other Counts, step int) {
	for place, number := range other {
		c[place] += step * number
	}
}

func (c Counts) stuck() bool { return c[Overdue]+c[Failed] > 0 }

// next returns the place of the next instance to start, or Outside if no instance can start.
func (c Counts) next() Place {
	switch {
	case c.stuck():
		return Outside
	case c[WaitingCanary] > 0:
		return WaitingCanary
	case c[rollingCanary] > 0:
		return Outside
	case c[Waiting] > 0:
		return Waiting
	case c[WaitingUnready] > 0:
		return WaitingUnready
	}
	return Outside
}

func (c Counts) takesPart() bool { return c[Rolling] > 0 || !c.stuck() && c.waiting() > 0 }

const (
	// SlotTime is how long an instance can hold a slot, for any deadline of its spec. It is longer
	// than the default deadline of 10 minutes: an instance of a bad release must fail, and stop the
	// rollout, before its slot admits another instance.
	SlotTime = 12 * time.Minute
	// HoldTime is how long a single namespace can keep OLM from replacing the operator.
	HoldTime = time.Hour
	// DefaultFailureThreshold is the number of failing namespaces that stops all.
	DefaultFailureThreshold = 2
	// minSlots is the minimum number of slots for several namespaces. One slot cannot be shared.
	minSlots = 2
)

// Policy is the administrator's configuration of rollouts.
type Policy struct {
	// MaxUnavailable is the number of slots, or a percentage of all instances.
	MaxUnavailable intstr.IntOrString
	// CanaryNamespaces are the namespaces whose canaries start before the instances of all
	// namespaces. Other canaries start before the instances of their own namespace.
	CanaryNamespaces sets.Set[string]
	// FailureThreshold is the number of namespaces with failures that stops the rollout for all. If
	// it is 0, failures never stop the rollout for all.
	FailureThreshold int
}

// Next returns the namespace that may start an instance now and the place of that instance, or
// Outside if none may start. It prefers the namespace with the fewest rolling instances, and of
// equals the first by name. Its cost grows with the logarithm of the number of namespaces.
func (p Policy) Next(s *State) (namespace string, from Place) {
	slots, limit := p.slots(s)
	if s.Unseen > 0 || p.Stopped(s) || s.held(limit) >= slots {
		return "", Outside
	}

	next, exists := s.ready.Min()
	if canary, canStart, awaited := p.nextCanary(s); awaited {
		next, exists = canary, canStart
	}
	if !exists || next.rolling >= limit {
		return "", Outside
	}
	return next.namespace, s.Namespaces[next.namespace].next()
}

// nextCanary returns the namespace of CanaryNamespaces that starts the next canary, if one can
// start, and whether all namespaces wait for these canaries.
func (p Policy) nextCanary(s *State) (next load, canStart, awaited bool) {
	for name := range p.CanaryNamespaces {
		counts := s.Namespaces[name]
		awaited = awaited || counts[rollingCanary] > 0
		candidate := load{counts[Rolling], name}
		if counts.next() == WaitingCanary && (!canStart || candidate.before(next)) {
			next, canStart = candidate, true
		}
	}
	return next, canStart, awaited || canStart
}

// Stopped reports whether failures stop the rollout for all namespaces.
func (p Policy) Stopped(s *State) bool {
	canaries := 0
	for name := range p.CanaryNamespaces {
		canaries += s.Namespaces[name][failedCanary]
	}
	return p.FailureThreshold > 0 && (s.failing >= p.FailureThreshold || canaries > 0)
}

// slots returns the number of instances that may roll at a time, and the limit of one namespace. It
// is one less if several namespaces take part, so that a slow namespace never blocks the others.
func (p Policy) slots(s *State) (slots, limit int) {
	slots = Limit(p.MaxUnavailable, s.All)
	if s.parts < minSlots {
		return slots, slots
	}

	slots = max(slots, minSlots)
	return slots, slots - 1
}

// Limit returns the number of slots for a number of instances. It is at least one.
func Limit(bound intstr.IntOrString, instances int) int {
	limit, _ := intstr.GetScaledValueFromIntOrPercent(&bound, instances, false) // ParseBound has checked it
	return max(limit, 1)
}

// ParseBound parses a number of instances, or a percentage of all instances.
func ParseBound(text string) (intstr.IntOrString, error) {
	digits, isPercentage := strings.CutSuffix(text, "%")
	number, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || number < 1 || isPercentage && number > 100 {
		return intstr.IntOrString{}, fmt.Errorf("%q is neither a number of at least 1 nor a percentage from 1%% to 100%%", text)
	}
	return intstr.Parse(strconv.FormatUint(number, 10) + text[len(digits):]), nil
}

// Reasons of the OperatorCondition Upgradeable.
const (
	ReasonIdle    = "Idle"
	ReasonRolling = "FleetRollout"
	ReasonStopped = "FleetRolloutStopped"
	// ReasonReleased (True) means that the last namespaces have kept OLM waiting for HoldTime.
	ReasonReleased = "FleetRolloutReleased"
)

// verdict is what the OperatorCondition reports, unless it is zero.
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
// Messages contain no counts, because each change causes a write.
func (p Policy) verdict(s *State, failing string, alone holds, now time.Time) verdict {
	const no, yes = metav1.ConditionFalse, metav1.ConditionTrue
	switch {
	case p.Stopped(s):
		return verdict{no, ReasonStopped, "the rollout of this release has stopped in all namespaces because it failed for " +
			failing + ". Correct, pause, or delete these instances, or set --fleet-rollout-failure-threshold"}
	case s.going > 1:
		return verdict{no, ReasonRolling, "instances are rolled to the Pod template of this release"}
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
		return verdict{yes, ReasonIdle, "no instance waits for the rollout of this release, so OLM may upgrade the operator"}
	case released:
		left := firstOf(slices.Collect(maps.Keys(s.Namespaces)))
		return verdict{yes, ReasonReleased, fmt.Sprintf("OLM may upgrade the operator, although instances of namespace %s still wait, "+
			"roll, or fail: one namespace defers upgrades for at most %d minutes", left, int(HoldTime.Minutes()))}
	case failing != "":
		message := "the rollout of this release failed for " + failing + ", so no other instance of that namespace starts. " +
			"Correct, pause, or delete the failed instance"
		return verdict{no, ReasonStopped, message}
	}

	return verdict{no, ReasonRolling, "instances of one namespace are rolled to the Pod template of this release"}
}
