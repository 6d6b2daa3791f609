package main

// This file remembers what an upgrade has reached.

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// journal remembers when an upgrade reached what.
type journal struct {
	// first and last are the versions of the releases between which it walks.
	first, last string
	began, done time.Time
	arrivals    []arrival
}

// arrival is the moment at which OLM said that a release is installed.
type arrival struct {
	version string
	at      time.Time
}

// note writes down what is new in a state.
func (j *journal) note(s state, now time.Time) {
	for _, release := range s.releases {
		// One that is replaced already was installed before, between two looks.
		reached := slices.Contains([]string{succeeded, "Replacing", "Deleting"}, release.phase)
		known := slices.ContainsFunc(j.arrivals, func(a arrival) bool { return a.version == release.version })
		if reached && !known && release.version != j.first {
			j.arrivals = append(j.arrivals, arrival{release.version, now})
		}
	}
	switch {
	case !s.done(j.last):
		j.done = time.Time{}
	case j.done.IsZero():
		j.done = now
	}
}

// doneFor returns for how long all has been done, 0 where it is not.
func (j *journal) doneFor(now time.Time) time.Duration {
	if j.done.IsZero() {
		return 0
	}
	return now.Sub(j.done)
}

// String says how long each step took.
func (j *journal) String() string {
	var out strings.Builder
	from, since := j.first, j.began
	for _, arrival := range j.arrivals {
		fmt.Fprintf(&out, "from %s to %s: %s\n", from, arrival.version, seconds(arrival.at.Sub(since)))
		from, since = arrival.version, arrival.at
	}
	fmt.Fprintf(&out, "until all was stored as %s, and OLM may go on from %s: another %s\n", finalAPI, from, seconds(j.done.Sub(since)))
	return out.String()
}
