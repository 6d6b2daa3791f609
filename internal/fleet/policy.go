package fleet

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// SlotTime is how long an instance holds its slot, whatever its spec.rollout.progressDeadlineSeconds says, which is two minutes
	// by default and an hour at most.
	SlotTime = 10 * time.Minute
	// HoldTime is how long one namespace alone keeps OLM from replacing the operator.
	HoldTime = time.Hour
	// DefaultFailureThreshold is the number of namespaces that stop the rollout for all.
	DefaultFailureThreshold = 2
	// minSlots are the slots for several namespaces: fewer could not be shared.
	minSlots = 2
)

// Policy is what the administrator decides of rollouts.
type Policy struct {
	// MaxUnavailable is the number of slots: of instances that roll at a time, or their percentage of all.
	MaxUnavailable intstr.IntOrString
	// CanaryNamespaces have canaries that start before the instances of all namespaces. A canary in another namespace starts before
	// those of its own namespace.
	CanaryNamespaces sets.Set[string]
	// FailureThreshold is the number of namespaces with failures that stops the rollout for all. 0 never stops it.
	FailureThreshold int
}

// Next returns the namespace that starts an instance now and the place from which it does, or Outside if none may start. It prefers the
// namespaces that hold the fewest slots. Between equals the order is random, so that no namespace is always the first or the last.
func (p Policy) Next(s State) (namespace string, from Place) {
	slots, limit := p.slots(s)
	held := 0
	for _, counts := range s.Namespaces {
		held += min(counts.Rolling, limit)
	}
	from = Outside
	if s.Unseen > 0 || p.Stopped(s) || held >= slots {
		return "", from
	}

	canaries := p.awaitsCanaries(s)
	for name, counts := range s.Namespaces {
		place := counts.next()
		if place == Outside || counts.Rolling >= limit || canaries && (place != WaitingCanary || !p.CanaryNamespaces.Has(name)) {
			continue
		}
		// Of namespaces with the same number of rolling objects, the first by name: a simulation repeats the same run.
		rolling := s.Namespaces[namespace].Rolling
		if from == Outside || counts.Rolling < rolling || counts.Rolling == rolling && name < namespace {
			namespace, from = name, place
		}
	}
	return namespace, from
}

// Stopped reports whether failures stop the rollout for all namespaces.
func (p Policy) Stopped(s State) bool {
	failing, canaries := 0, 0
	for name, counts := range s.Namespaces {
		if counts.Failed > 0 {
			failing++
		}
		if p.CanaryNamespaces.Has(name) {
			canaries += counts.FailedCanaries
		}
	}
	return p.FailureThreshold > 0 && (failing >= p.FailureThreshold || canaries > 0)
}

// awaitsCanaries reports whether all namespaces wait for canaries of the administrator's choice.
func (p Policy) awaitsCanaries(s State) bool {
	for name := range p.CanaryNamespaces {
		if counts := s.Namespaces[name]; counts.RollingCanaries > 0 || !counts.stuck() && counts.Canaries > 0 {
			return true
		}
	}
	return false
}

// slots returns how many instances may roll at a time, and how many of them may be of one namespace: all but one if several
// namespaces take part, so that a slow one never holds up the others.
func (p Policy) slots(s State) (slots, limit int) {
	slots = Limit(p.MaxUnavailable, s.All)
	parts := 0
	for _, counts := range s.Namespaces {
		if counts.takesPart() {
			parts++
		}
	}
	if parts < minSlots {
		return slots, slots
	}
	slots = max(slots, minSlots)
	return slots, slots - 1
}

// Limit returns the number of slots for so many instances: at least one.
func Limit(bound intstr.IntOrString, instances int) int {
	limit, err := intstr.GetScaledValueFromIntOrPercent(&bound, instances, false)
	if err != nil {
		return 1
	}
	return max(limit, 1)
}

// ParseBound reads a number of instances, or a percentage of all.
func ParseBound(text string) (intstr.IntOrString, error) {
	digits, isPercentage := strings.CutSuffix(text, "%")
	number, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || number < 1 || isPercentage && number > 100 {
		return intstr.IntOrString{}, fmt.Errorf("%q is neither a number of at least 1 nor a percentage from 1%% to 100%%", text)
	}
	return intstr.Parse(strconv.FormatUint(number, 10) + text[len(digits):]), nil
}
