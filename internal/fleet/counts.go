// Package fleet bounds how many instances roll at a time because a release of the operator changes them, and shares the slots
// between namespaces. Each reconcile reads the place of its instance from the cluster and reports it to the Gate, which counts.
// The Gate remembers nothing else: after a restart it admits no instance before each object was reconciled once.
// docs/adr/0030-fleet-rollout.md and docs/adr/0042-fleet-rollout-fairness.md have the reasons.
package fleet

import "maps"

// Place is the place of an instance in the rollout of a release.
type Place int

// The places. Those of waiting instances come first, in the order in which a namespace starts them.
const (
	// WaitingCanary waits, serves, and has the label of canaries.
	WaitingCanary Place = iota
	// Waiting waits and serves.
	Waiting
	// WaitingUnready waits and did not serve before: it says nothing of the release, so it comes last, and its failure does not count.
	WaitingUnready
	// Rolling has started, holds a slot, and is not Ready yet.
	Rolling
	// Overdue has started more than SlotTime ago and is not Ready yet. Its slot is free. Only the Gate assigns this place.
	Overdue
	// Failed has started, and its rollout fails or was rolled back.
	Failed
	// Outside takes no part: the instance has the release's change, or its user has changed, paused or broken it.
	Outside
)

// waits reports whether an instance in that place waits for a slot.
func (p Place) waits() bool { return p <= WaitingUnready }

// Counts has the number of instances in each place, of one namespace or of all.
type Counts struct {
	// Canaries, Ready and Unready wait.
	Canaries, Ready, Unready int
	// Rolling hold a slot. RollingCanaries of them are canaries.
	Rolling, RollingCanaries int
	// Overdue have given their slot back.
	Overdue int
	// Failed served before they started. FailedCanaries of them are canaries.
	Failed, FailedCanaries int
}

// Waiting returns how many instances wait.
func (c Counts) Waiting() int { return c.Canaries + c.Ready + c.Unready }

// add counts an instance in, or out with a step of -1.
func (c *Counts) add(of member, step int) {
	canary := 0
	if of.canary {
		canary = step
	}
	switch of.place {
	case WaitingCanary:
		c.Canaries += step
	case Waiting:
		c.Ready += step
	case WaitingUnready:
		c.Unready += step
	case Rolling:
		c.Rolling += step
		c.RollingCanaries += canary
	case Overdue:
		c.Overdue += step
	case Failed:
		if !of.unproven {
			c.Failed += step
			c.FailedCanaries += canary
		}
	}
}

// stuck reports whether the instances of a namespace that wait have to wait for one of its own that fails or is overdue.
func (c Counts) stuck() bool { return c.Overdue+c.Failed > 0 }

// next returns the place from which a namespace starts its next instance, or Outside if it starts none now.
func (c Counts) next() Place {
	switch {
	case c.stuck():
		return Outside
	case c.Canaries > 0:
		return WaitingCanary
	case c.RollingCanaries > 0:
		return Outside
	case c.Ready > 0:
		return Waiting
	case c.Unready > 0:
		return WaitingUnready
	}
	return Outside
}

// takesPart reports whether a namespace holds slots, or waits for slots that it may have.
func (c Counts) takesPart() bool { return c.Rolling > 0 || !c.stuck() && c.Waiting() > 0 }

// State is the rollout of a release to all instances.
type State struct {
	// All is the number of instances with replicas. Unseen were not reconciled since this process started.
	All, Unseen int
	// Namespaces has those that have instances in a place other than Outside.
	Namespaces map[string]Counts
}

// clone returns a copy that shares nothing with the state.
func (s State) clone() State {
	s.Namespaces = maps.Clone(s.Namespaces)
	return s
}

// Sum returns the counts of all namespaces together.
func (s State) Sum() Counts {
	var sum Counts
	for _, c := range s.Namespaces {
		sum.Canaries += c.Canaries
		sum.Ready += c.Ready
		sum.Unready += c.Unready
		sum.Rolling += c.Rolling
		sum.RollingCanaries += c.RollingCanaries
		sum.Overdue += c.Overdue
		sum.Failed += c.Failed
		sum.FailedCanaries += c.FailedCanaries
	}
	return sum
}
