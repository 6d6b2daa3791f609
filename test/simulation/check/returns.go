package check

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// inFlight is how long before a write the operator may have read the object that requests it.
const inFlight = 10 * time.Second

// requests are the times at which something asked for other children, by the instance, and for all
// instances by "".
type requests map[string][]time.Time

// between counts the requests after a time and not after another.
func (r requests) between(instance string, from, to time.Time) int {
	count := 0
	for _, name := range []string{"", instance} {
		for _, at := range r[name] {
			if at.After(from) && !at.After(to) {
				count++
			}
		}
	}
	return count
}

// past has the specs of a child.
type past struct {
	now, before Change
	// problem is that of the present spec, or "".
	problem string
	// replaced has the time at which another spec replaced one.
	replaced map[string]time.Time
}

// write notes another spec, and returns the problem of the one before if that stayed.
func (p *past) write(change Change, asks requests) string {
	text := textOf(change.Spec)
	if text == textOf(p.now.Spec) {
		return ""
	}
	if p.problem != "" && p.adds() && text == textOf(p.before.Spec) {
		p.now, p.problem = change, ""
		return ""
	}

	problem := p.lasting()
	replaced := textOf(p.now.Spec)
	p.replaced[replaced] = change.At
	p.before, p.now, p.problem = p.now, change, ""
	// The request for the replacement precedes it. Only another request brings the earlier spec
	// back.
	left, isEarlier := p.replaced[text]
	if isEarlier && asks.between(change.Instance, left, change.At) == 0 && asks.between(change.Instance, left.Add(-inFlight), change.At) < 2 {
		was, is := excerpts(replaced, text)
		p.problem = fmt.Sprintf("%s %s got an earlier spec again at %s, and nothing asked for it:\n  before %s\n  after  %s",
			change.Child, change.Instance, change.At.Format(time.TimeOnly), was, is)
	}
	return problem
}

// adds reports whether the present spec has all ports of the one before. A process on an older view
// of the Pods serves ports that these listened on, in addition to those that the spec declares.
func (p *past) adds() bool {
	return len(p.before.Ports) > 0 &&
		!slices.ContainsFunc(p.before.Ports, func(port string) bool { return !slices.Contains(p.now.Ports, port) })
}

// lasting returns the problem of the present spec, or "" if the spec only adds ports.
func (p *past) lasting() string {
	if p.adds() {
		return ""
	}
	return p.problem
}

// Returns returns the children that got an earlier spec again, although nothing asked for it: an
// older declaration was written.
func Returns(history []Change) []string {
	asks, children := requests{}, map[string]*past{}
	var out []string
	report := func(problem string) {
		if problem != "" {
			out = append(out, problem)
		}
	}
	for _, change := range history {
		if change.Asks {
			asks[change.Instance] = append(asks[change.Instance], change.At)
			continue
		}
		name := change.Child + " " + change.Instance
		if children[name] == nil {
			children[name] = &past{now: change, replaced: map[string]time.Time{}}
		}
		report(children[name].write(change, asks))
	}
	for _, name := range slices.Sorted(maps.Keys(children)) {
		report(children[name].lasting())
	}
	return out
}
