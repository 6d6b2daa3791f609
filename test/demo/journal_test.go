package main

import (
	"testing"
	"time"
)

// The journal knows each release from the moment on at which it is installed, and is done only while everything is.
func TestJournal(t *testing.T) {
	began := time.Now()
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	final := state{releases: []release{{"0.3.0", succeeded}}, stored: []string{finalAPI}, upgradeable: "True"}
	migrating := final
	migrating.stored, migrating.upgradeable = []string{firstAPI, finalAPI}, "False"

	j := journal{first: "0.1.0", last: "0.3.0", began: began}
	for _, step := range []struct {
		at       int
		state    state
		arrivals int
		doneFor  time.Duration
	}{
		{1, state{}, 0, 0},
		{2, state{releases: []release{{"0.1.0", succeeded}}}, 0, 0},
		{3, state{releases: []release{{"0.1.0", "Replacing"}, {"0.2.0", "Installing"}}}, 0, 0},
		{10, state{releases: []release{{"0.1.0", "Deleting"}, {"0.2.0", succeeded}}}, 1, 0},
		{11, state{releases: []release{{"0.2.0", "Replacing"}, {"0.3.0", "Pending"}}}, 1, 0},
		{15, migrating, 2, 0},
		{20, final, 2, 0},
		{22, final, 2, 2 * time.Second},
		{23, migrating, 2, 0},
		{40, final, 2, 0},
		{45, final, 2, 5 * time.Second},
	} {
		j.note(step.state, at(step.at))
		if len(j.arrivals) != step.arrivals || j.doneFor(at(step.at)) != step.doneFor {
			t.Errorf("after %d s: %v, done for %s", step.at, j.arrivals, j.doneFor(at(step.at)))
		}
	}
	const want = "from 0.1.0 to 0.2.0: 10.0 s\nfrom 0.2.0 to 0.3.0: 5.0 s\n" +
		"until all was stored as v1alpha2, and OLM may go on from 0.3.0: another 25.0 s\n"
	if j.String() != want {
		t.Errorf("%s\nwant\n%s", &j, want)
	}
}

// A release that is replaced already when it is seen for the first time was installed.
func TestJournalLate(t *testing.T) {
	j := journal{first: "0.1.0", last: "0.3.0"}
	j.note(state{releases: []release{{"0.2.0", "Replacing"}, {"0.3.0", "Installing"}}}, time.Now())
	if len(j.arrivals) != 1 || j.arrivals[0].version != "0.2.0" {
		t.Errorf("%v", j.arrivals)
	}
}
