// Package fleet limits how many instances roll at a time after an operator upgrade changes them,
// and shares the slots between namespaces. Each reconcile determines the place of its instance from
// the cluster and reports it to the Gate, which counts the instances. The Gate stores nothing else,
// so after a restart it admits no instance until each object was reconciled once. For the reasons,
// see docs/adr/0030-fleet-rollout.md and docs/adr/0042-fleet-rollout-fairness.md.
package fleet

// Place is the place of an instance in the rollout of a release.
type Place int

// The places. The waiting places come first, in the order in which a namespace starts their
// instances.
const (
	// WaitingCanary waits, serves, and has the label of canaries.
	WaitingCanary Place = iota
	// Waiting waits and serves.
	Waiting
	// WaitingUnready waits and did not serve before. It starts last and its failure does not count,
	// because it shows nothing about the release.
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
)

// waits reports whether an instance in this place waits for a slot.
func (p Place) waits() bool { return p <= WaitingUnready }

// Counts has the number of instances in each place, of one namespace or of all namespaces.
type Counts struct {
	// Canaries, Ready, and Unready wait.
	Canaries, Ready, Unready int
	// Rolling hold a slot. RollingCanaries are the canaries among them.
	Rolling, RollingCanaries int
	// Overdue have lost their slots.
	Overdue int
	// Failed served before they started. FailedCanaries are the canaries among them.
	Failed, FailedCanaries int
}

// Waiting returns the number of waiting instances.
func (c Counts) Waiting() int { return c.Canaries + c.Ready + c.Unready }

// add adds an instance to the counts, or removes it if step is -1.
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

// plus adds the counts of other instances, or subtracts them if step is -1.
func (c *Counts) plus(other Counts, step int) {
	c.Canaries += step * other.Canaries
	c.Ready += step * other.Ready
	c.Unready += step * other.Unready
	c.Rolling += step * other.Rolling
	c.RollingCanaries += step * other.RollingCanaries
	c.Overdue += step * other.Overdue
	c.Failed += step * other.Failed
	c.FailedCanaries += step * other.FailedCanaries
}

// stuck reports whether the waiting instances of a namespace are blocked by a failed or overdue
// instance of the same namespace.
func (c Counts) stuck() bool { return c.Overdue+c.Failed > 0 }

// next returns the place from which a namespace starts its next instance, or Outside if it cannot
// start one now.
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

// takesPart reports whether a namespace holds slots, or waits for slots and is not stuck.
func (c Counts) takesPart() bool { return c.Rolling > 0 || !c.stuck() && c.Waiting() > 0 }
