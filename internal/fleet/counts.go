// Package fleet limits how many instances roll at a time after an operator upgrade changes them,
// and shares the slots between namespaces. Each reconcile determines the place of its instance from
// the cluster and reports it to the Gate, which counts the instances. The Gate stores nothing else,
// so after a restart it admits no instance until each object was reconciled once. For the reasons,
// see docs/adr/0030-fleet-rollout.md and docs/adr/0042-fleet-rollout-fairness.md.
package fleet

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
	// Overdue has started more than SlotTime ago and is not Ready yet. Its slot is free. Only the
	// Gate assigns this place.
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

// waiting returns the number of waiting instances.
func (c Counts) waiting() int { return c[WaitingCanary] + c[Waiting] + c[WaitingUnready] }

// add adds an instance to the counts, or removes it if step is -1.
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

// plus adds the counts of other instances, or subtracts them if step is -1.
func (c *Counts) plus(other Counts, step int) {
	for place, number := range other {
		c[place] += step * number
	}
}

// stuck reports whether a failed or overdue instance of a namespace blocks its waiting instances.
func (c Counts) stuck() bool { return c[Overdue]+c[Failed] > 0 }

// next returns the place from which a namespace starts its next instance, or Outside if it cannot
// start one now.
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

// takesPart reports whether a namespace holds slots, or waits for slots and is not stuck.
func (c Counts) takesPart() bool { return c[Rolling] > 0 || !c.stuck() && c.waiting() > 0 }
