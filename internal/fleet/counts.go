// Package fleet bounds how many instances roll at a time because a release of the operator makes something else of them.
// What an instance waits for, or how far it is, each of its reconciles reads from the cluster and reports to the Gate, which counts.
// Nothing else is remembered: the Gate of the next leader lets none begin before each object was reconciled once.
// docs/adr/0030-fleet-rollout.md has the reasons.
package fleet

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Place is where an instance is in the rollout of a release.
type Place int

// The places. The groups of those that wait come first, in their order.
const (
	// WaitingCanary waits, serves, and is labelled to go first.
	WaitingCanary Place = iota
	// Waiting waits and serves.
	Waiting
	// WaitingUnready waits and did not serve before: it says nothing of the release, so it comes last, and its failure does not count.
	WaitingUnready
	// Rolling has begun and is not Ready yet.
	Rolling
	// Failed has begun, and its rollout fails or was taken back.
	Failed
	// Outside takes no part: it is what the release makes of it, or its user has changed, paused or broken it.
	Outside
)

// waits reports whether an instance in that place waits for its turn.
func (p Place) waits() bool { return p <= WaitingUnready }

// Counts has how many instances there are, and where.
type Counts struct {
	// All are the instances that there are, Unseen those that were not reconciled since this process began.
	All, Unseen int
	// Canaries, Ready and Unready wait.
	Canaries, Ready, Unready int
	// Rolling have begun, RollingCanaries of them are canaries.
	Rolling, RollingCanaries int
	// Failed stop the rollout.
	Failed int
}

// Waiting returns how many instances wait.
func (c Counts) Waiting() int { return c.Canaries + c.Ready + c.Unready }

// Next returns how many more instances may begin, and of which group.
func (c Counts) Next(bound intstr.IntOrString) (group Place, instances int) {
	free := Limit(bound, c.All) - c.Rolling
	if c.Unseen > 0 || c.Failed > 0 || free <= 0 {
		return Outside, 0
	}
	switch {
	case c.Canaries > 0:
		return WaitingCanary, min(free, c.Canaries)
	case c.RollingCanaries > 0:
		return Outside, 0
	case c.Ready > 0:
		return Waiting, min(free, c.Ready)
	case c.Unready > 0:
		return WaitingUnready, min(free, c.Unready)
	}
	return Outside, 0
}

// Limit returns how many of so many instances may roll at a time: one at least.
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
