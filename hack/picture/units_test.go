package main

import (
	"slices"
	"testing"
	"time"
)

func labelsOf(ticks []tick) []string {
	var out []string
	for _, t := range ticks {
		out = append(out, t.label)
	}
	return out
}

// Marks reach over all values, are few, and are numbers that people count in.
func TestValueTicks(t *testing.T) {
	for name, test := range map[string]struct {
		extent extent
		unit   string
		want   []string
	}{
		"counts":             {extent{0, 24, true}, "short", []string{"0", "5", "10", "15", "20", "25"}},
		"one":                {extent{0, 1, true}, "short", []string{"0", "1"}},
		"nothing but zero":   {extent{0, 0, true}, "short", []string{"0", "1"}},
		"a level line":       {extent{0.5, 0.5, false}, "reqps", []string{"0.4", "0.6", "0.8", "1.0", "1.2", "1.4", "1.6"}},
		"a part of one":      {extent{0, 0.2, false}, "cps", []string{"0", "0.05", "0.10", "0.15", "0.20"}},
		"thousands":          {extent{0, 4321, true}, "short", []string{"0", "1K", "2K", "3K", "4K", "5K"}},
		"below zero":         {extent{-0.3, 0.9, false}, "short", []string{"-0.5", "0", "0.5", "1.0"}},
		"bytes":              {extent{0, 90 << 20, true}, "bytes", []string{"0", "20 MiB", "40 MiB", "60 MiB", "80 MiB", "100 MiB"}},
		"milliseconds":       {extent{0, 0.031, false}, "s", []string{"0", "10 ms", "20 ms", "30 ms", "40 ms"}},
		"days":               {extent{0, 3 * 86400, true}, "s", []string{"0", "1 d", "2 d", "3 d"}},
		"an unknown unit":    {extent{0, 2, false}, "percent", []string{"0", "0.5", "1.0", "1.5", "2.0"}},
		"negative and level": {extent{-2, -2, true}, "short", []string{"-2", "-1", "0"}},
	} {
		if got := labelsOf(valueTicks(test.extent, unitOf(test.unit))); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	for most := 0.001; most < 1e9; most *= 1.37 {
		ticks := valueTicks(extent{0, most, false}, unitOf("short"))
		if len(ticks) < 3 || len(ticks) > 7 || ticks[0].value > 0 || ticks[len(ticks)-1].value < most*(1-1e-9) {
			t.Errorf("the marks from 0 to %g are %v", most, ticks)
		}
	}
}

func TestTimeTicks(t *testing.T) {
	end := time.Date(2026, 1, 31, 12, 0, 30, 0, time.UTC)
	for span, want := range map[time.Duration][]string{
		2 * time.Minute:     {"11:58:30", "11:59:00", "11:59:30", "12:00:00", "12:00:30"},
		10 * time.Minute:    {"11:52", "11:54", "11:56", "11:58", "12:00"},
		time.Hour:           {"11:15", "11:30", "11:45", "12:00"},
		24 * time.Hour:      {"18:00", "00:00", "06:00", "12:00"},
		20 * 24 * time.Hour: {"Jan 13", "Jan 17", "Jan 21", "Jan 25", "Jan 29"},
	} {
		if got := labelsOf(timeTicks(window{start: end.Add(-span), end: end}, 6)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", span, got, want)
		}
	}
}
