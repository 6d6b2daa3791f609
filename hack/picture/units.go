package main

import (
	"math"
	"strconv"
	"time"
)

// scale is in what a unit counts from a size on: 1024 bytes are 1 KiB.
type scale struct {
	factor float64
	suffix string
}

// unit is one of Grafana's units: what it is called, and its scales, the least first.
type unit struct {
	label  string
	scales []scale
}

var decimal = []scale{{1, ""}, {1e3, "K"}, {1e6, "M"}, {1e9, "G"}}

// units are those of Grafana's that dashboards of this repository use, by their identifiers.
var units = map[string]unit{
	"short": {"", decimal},
	"reqps": {"requests/s", decimal},
	"cps":   {"per second", decimal},
	"bytes": {"", []scale{{1, " B"}, {1 << 10, " KiB"}, {1 << 20, " MiB"}, {1 << 30, " GiB"}}},
	"s":     {"", []scale{{1e-6, " µs"}, {1e-3, " ms"}, {1, " s"}, {60, " min"}, {3600, " h"}, {86400, " d"}}},
}

// unitOf returns the unit of that identifier. One that is not known is called by it.
func unitOf(id string) unit {
	if known, found := units[id]; found {
		return known
	}
	return unit{id, decimal}
}

// scaleOf returns the scale in which a size is not less than 1, or the least one.
func (u unit) scaleOf(size float64) scale {
	out := u.scales[0]
	for _, s := range u.scales {
		if size >= s.factor {
			out = s
		}
	}
	if size == 0 { // of which any scale will do
		for _, s := range u.scales {
			if s.factor == 1 {
				out = s
			}
		}
	}
	return out
}

// tick is a mark on an axis.
type tick struct {
	value float64
	label string
}

// valueTicks returns up to seven marks that reach from the least to the greatest value, at 1, 2 or 5 times a power of ten of the unit.
// Where values are counts there are none in between.
func valueTicks(e extent, u unit) []tick {
	if e.most <= e.least {
		e.most = e.least + max(1, math.Abs(e.least)) // a level line is at the foot of its panel
	}
	s := u.scaleOf(max(math.Abs(e.least), math.Abs(e.most)))
	step := niceStep((e.most - e.least) / s.factor / 5)
	if e.whole && s.factor == 1 {
		step = max(1, step)
	}
	first, last := math.Floor(e.least/s.factor/step), math.Ceil(e.most/s.factor/step)
	decimals := max(0, int(-math.Floor(math.Log10(step))))
	var out []tick
	for i := first; i <= last; i++ {
		value := i * step
		label := strconv.FormatFloat(value, 'f', decimals, 64) + s.suffix
		if value == 0 {
			label = "0"
		}
		out = append(out, tick{value * s.factor, label})
	}
	return out
}

// niceStep returns the least of 1, 2 or 5 times a power of ten that is not less than a number.
func niceStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= least*(1-1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// timeSteps are how far apart marks of time are.
var timeSteps = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// timeTicks returns up to a number of marks within a window, in UTC.
func timeTicks(w window, most int) []tick {
	span := w.end.Sub(w.start)
	step := timeSteps[len(timeSteps)-1]
	for _, candidate := range timeSteps {
		if span/candidate < time.Duration(most) {
			step = candidate
			break
		}
	}
	for span/step >= time.Duration(most) { // days
		step *= 2
	}
	layout := "15:04"
	switch {
	case step < time.Minute:
		layout = "15:04:05"
	case step >= 24*time.Hour:
		layout = "Jan 2"
	}
	var out []tick
	for at := w.start.Add(step - 1).Truncate(step); !at.After(w.end); at = at.Add(step) {
		out = append(out, tick{float64(at.Unix()), at.Format(layout)})
	}
	return out
}
