package main

import (
	"image/color"
	"slices"
	"strconv"
	"testing"

	"gonum.org/v1/plot/vg"
)

// A line keeps its colour in every panel, unless the panel gives another, and no two lines of a panel have one.
func TestColors(t *testing.T) {
	given := colors{}
	first := given.of([]string{"a", "b", "broken"}, map[string]string{"broken": "red", "none": "green"})
	second := given.of([]string{"c", "b", "a"}, nil)
	kept := second["a"] == first["a"] && second["b"] == first["b"] && second["c"] != first["a"] && second["c"] != first["b"]
	if first["broken"] != named["red"] || !kept {
		t.Errorf("%v, then %v", first, second)
	}
	fixed := given.of([]string{"a", "total"}, map[string]string{"total": "blue"})
	if fixed["total"] != named["blue"] || fixed["a"] == fixed["total"] {
		t.Errorf("%v; blue is the colour of the total alone", fixed)
	}
	var names []string
	for i := range palette {
		names = append(names, string(rune('p'+i)))
	}
	seen := map[color.Color]bool{}
	for _, value := range given.of(names, nil) {
		seen[value] = true
	}
	if len(seen) != len(palette) {
		t.Errorf("%d lines have %d colours", len(palette), len(seen))
	}
}

// Of many series those with the greatest values are drawn, in their order.
func TestGreatest(t *testing.T) {
	var all []series
	for _, value := range []float64{3, 1, 5, 2, 4} {
		all = append(all, series{name: strconv.FormatFloat(value, 'f', 0, 64), runs: [][]point{{{0, value}, {15, 0}}}})
	}
	shown, left := greatest(all, 3)
	if names := namesOf(shown); !slices.Equal(names, []string{"3", "5", "4"}) || left != 2 {
		t.Errorf("%q and %d more", names, left)
	}
	if shown, left := greatest(all, 5); len(shown) != 5 || left != 0 {
		t.Errorf("%q and %d more, of 5", namesOf(shown), left)
	}
}

// Names flow into rows. The last has room for how many more there are, if there are any.
func TestFlow(t *testing.T) {
	entries := func(n int) []vg.Length { return slices.Repeat([]vg.Length{88}, n) } // 100 with what is between them
	for _, test := range []struct {
		entries, left int
		want          []int
	}{
		{1, 0, []int{1}},
		{3, 0, []int{3}},
		{4, 0, []int{3, 1}},
		{12, 0, []int{3, 3, 3, 3}},
		{13, 0, []int{3, 3, 3, 2}},
		{12, 5, []int{3, 3, 3, 2}},
		{11, 5, []int{3, 3, 3, 2}},
		{3, 5, []int{3, 0}},
		{2, 5, []int{2}},
	} {
		if got := flow(entries(test.entries), 60, 300, test.left); !slices.Equal(got, test.want) {
			t.Errorf("%d entries and %d more: %d, want %d", test.entries, test.left, got, test.want)
		}
	}
	if got := flow([]vg.Length{300, 300}, 60, 300, 0); !slices.Equal(got, []int{1, 1}) {
		t.Errorf("entries as wide as a row: %d", got)
	}
}

func TestShorten(t *testing.T) {
	style := textStyle(8, ink, false)
	const text = "a name that is longer than its place"
	short := shorten(style, text, 60)
	if style.Width(short) > 60 || len(short) < 8 || short[:6] != "a name" || shorten(style, text, 600) != text {
		t.Errorf("%q", short)
	}
}
