package main

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"sort"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// steps is into how many steps the time that is drawn is divided: one for each three points of a panel's width.
const steps = 100

// window is the time that is drawn.
type window struct {
	start, end time.Time
	step       time.Duration
}

// newWindow returns the window of a length that ends at a time, or up to a step before it. Steps are whole seconds, and counted from the
// year 1, so that within one the picture is the same.
func newWindow(end time.Time, span time.Duration) window {
	step := max(time.Second, (span / steps).Round(time.Second))
	end = end.UTC().Truncate(step)
	return window{start: end.Add(-span.Round(step)), end: end, step: step}
}

// rateInterval returns what $__rate_interval stands for, at least a step, so that nothing between two steps is left out.
func (w window) rateInterval(least time.Duration) time.Duration { return max(least, w.step) }

// point is a value at a time, in seconds since 1970.
type point struct{ time, value float64 }

// series is a line: its name in the legend, and its points, a run for each time without a gap.
type series struct {
	name string
	runs [][]point
}

// extent is between what some values are, and whether all of them are whole numbers.
type extent struct {
	least, most float64
	whole       bool
}

func (e extent) and(other extent) extent {
	return extent{min(e.least, other.least), max(e.most, other.most), e.whole && other.whole}
}

func (s *series) extent() extent {
	out := extent{math.Inf(1), math.Inf(-1), true}
	for _, run := range s.runs {
		for _, p := range run {
			out = out.and(extent{p.value, p.value, p.value == math.Trunc(p.value)})
		}
	}
	return out
}

// source is a Prometheus.
type source struct {
	api    v1.API
	window window
}

func newSource(url string, window window) (*source, error) {
	client, err := api.NewClient(api.Config{Address: url})
	if err != nil {
		return nil, fmt.Errorf("failed to use %s: %w", url, err)
	}
	return &source{v1.NewAPI(client), window}, nil
}

// ask returns the series that a query has in the window, in the order of their labels.
func (s *source) ask(ctx context.Context, query, legend string) ([]series, error) {
	value, _, _, err := s.api.QueryRange(ctx, query, v1.Range{Start: s.window.start, End: s.window.end, Step: s.window.step})
	if err != nil {
		return nil, fmt.Errorf("failed to query %s: %w", query, err)
	}
	matrix, is := value.(model.Matrix)
	if !is {
		return nil, fmt.Errorf("failed to query %s: the answer is a %s", query, value.Type())
	}
	sort.Sort(matrix)
	var out []series
	for _, stream := range matrix {
		if runs := split(stream.Values, s.window.step); len(runs) > 0 {
			out = append(out, series{name: nameOf(stream.Metric, legend), runs: runs})
		}
	}
	return out, nil
}

// split returns runs of points that are a step apart. What is no number is a gap.
func split(samples []model.SamplePair, step time.Duration) [][]point {
	var runs [][]point
	var last model.Time
	for _, sample := range samples {
		value := float64(sample.Value)
		if math.IsNaN(value) || math.IsInf(value, 0) {
			continue
		}
		if len(runs) == 0 || sample.Timestamp.Sub(last) > step {
			runs = append(runs, nil)
		}
		at := len(runs) - 1
		runs[at] = append(runs[at], point{float64(sample.Timestamp) / 1000, value})
		last = sample.Timestamp
	}
	for i := range runs {
		runs[i] = thin(runs[i])
	}
	return runs
}

// thin leaves out the points within a stretch that is level: the line is the same without them.
func thin(run []point) []point {
	out := run[:0:0]
	for i, p := range run {
		if i == 0 || i == len(run)-1 || run[i-1].value != p.value || run[i+1].value != p.value {
			out = append(out, p)
		}
	}
	return out
}

var placeholder = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// nameOf returns what a legend says of a series: its labels in the place of {{label}}, or all of them where there is no legend.
func nameOf(labels model.Metric, legend string) string {
	if legend == "" {
		return labels.String()
	}
	return placeholder.ReplaceAllStringFunc(legend, func(text string) string {
		return string(labels[model.LabelName(placeholder.FindStringSubmatch(text)[1])])
	})
}
