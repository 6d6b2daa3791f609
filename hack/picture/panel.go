package main

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes in points within a panel.
const (
	padding      = 9
	titleHeight  = 22
	legendHeight = 11
	swatch       = 9
	swatchGap    = 4
	legendGap    = 12
	// tickDistance is how far apart marks of time are at least.
	tickDistance = 45
)

// legendRows is how many rows of a panel its legend may take.
const legendRows = 4

// drawPanel draws a panel: its title and unit, its lines, and below them their names.
func drawPanel(c draw.Canvas, p *answered, w window, given colors) error {
	bold := textStyle(10, ink, true)
	if p.Type == "row" {
		bold.YAlign = draw.YCenter
		c.FillText(bold, vg.Point{X: c.Min.X, Y: c.Center().Y}, p.Title)
		return nil
	}
	c.SetColor(white)
	c.Fill(c.Path())
	c.SetColor(frame)
	c.SetLineWidth(0.5)
	c.Stroke(c.Path())
	inner := draw.Crop(c, padding, -padding, padding, -padding)
	u := unitOf(p.FieldConfig.Defaults.Unit)
	label := textStyle(8, shaded, false)
	title := shorten(bold, p.Title, inner.Size().X-label.Width(u.label)-padding)
	c.FillText(bold, vg.Point{X: inner.Min.X, Y: inner.Max.Y}, title)
	c.FillText(label, vg.Point{X: inner.Min.X + bold.Width(title) + padding/2, Y: inner.Max.Y - 1.5}, u.label)
	inner.Max.Y -= titleHeight
	if len(p.series) == 0 {
		label.XAlign, label.YAlign = draw.XCenter, draw.YCenter
		c.FillText(label, inner.Center(), "No data")
		return nil
	}
	shown, left := greatest(p.series, len(palette))
	colored := given.of(namesOf(shown), p.fixedColors())
	inner.Min.Y += drawLegend(inner, shown, left, colored)
	return drawLines(inner, p, shown, colored, w)
}

func namesOf(all []series) []string {
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].name
	}
	return out
}

// greatest returns the series that have the greatest values, in their order, and how many others there are.
func greatest(all []series, most int) (shown []series, left int) {
	if len(all) <= most {
		return all, 0
	}
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b series) int {
		return cmp.Compare(b.extent().most, a.extent().most)
	})
	kept := map[*point]bool{}
	for i := range order[:most] {
		kept[&order[i].runs[0][0]] = true
	}
	for i := range all {
		if kept[&all[i].runs[0][0]] {
			shown = append(shown, all[i])
		}
	}
	return shown, len(all) - most
}

// drawLines draws the axes and the lines.
func drawLines(c draw.Canvas, p *answered, shown []series, colored map[string]color.Color, w window) error {
	chart := plot.New()
	chart.BackgroundColor = nil
	small := textStyle(7.5, shaded, false)
	for _, axis := range []*plot.Axis{&chart.X, &chart.Y} {
		axis.Padding, axis.Tick.Length, axis.Width, axis.Tick.Width = 0, 0, 0, 0
		small.XAlign, small.YAlign = axis.Tick.Label.XAlign, axis.Tick.Label.YAlign
		axis.Tick.Label = small
	}
	chart.X.Padding, chart.Y.Padding = 5, 4 // The first mark of time is below the last of values.
	ticks := valueTicks(extentOf(p, shown), unitOf(p.FieldConfig.Defaults.Unit))
	chart.Y.Min, chart.Y.Max = ticks[0].value, ticks[len(ticks)-1].value
	chart.Y.Tick.Marker = marks(ticks)
	chart.X.Min, chart.X.Max = float64(w.start.Unix()), float64(w.end.Unix())
	chart.X.Tick.Marker = marks(timeTicks(w, int(c.Size().X/tickDistance)))
	lines := plotter.NewGrid()
	lines.Vertical.Color = nil
	lines.Horizontal = draw.LineStyle{Color: grid, Width: 0.75}
	chart.Add(lines)
	for i := range shown {
		for _, run := range shown[i].runs {
			drawn, err := newRun(run, colored[shown[i].name])
			if err != nil {
				return err
			}
			chart.Add(drawn)
		}
	}
	chart.Draw(c)
	return nil
}

// newRun returns what draws a run: a line, or a dot where it is a single point.
func newRun(run []point, c color.Color) (plot.Plotter, error) {
	points := make(plotter.XYs, len(run))
	for i, p := range run {
		points[i] = plotter.XY{X: p.time, Y: p.value}
	}
	if len(run) == 1 {
		dot, err := plotter.NewScatter(points)
		if err != nil {
			return nil, fmt.Errorf("failed to draw a point: %w", err)
		}
		dot.GlyphStyle = draw.GlyphStyle{Color: c, Radius: 1.5, Shape: draw.CircleGlyph{}}
		return dot, nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, fmt.Errorf("failed to draw a line: %w", err)
	}
	line.LineStyle = draw.LineStyle{Color: c, Width: 1.25}
	return line, nil
}

// extentOf returns what a panel's axis has to hold: every value, and where the panel has its axis begin.
func extentOf(p *answered, shown []series) extent {
	out := shown[0].extent()
	for i := range shown {
		out = out.and(shown[i].extent())
	}
	if begin := p.FieldConfig.Defaults.Min; begin != nil {
		out = out.and(extent{*begin, *begin, true})
	}
	return out
}

func marks(ticks []tick) plot.ConstantTicks {
	out := make(plot.ConstantTicks, len(ticks))
	for i, t := range ticks {
		out[i] = plot.Tick{Value: t.value, Label: t.label}
	}
	return out
}

// drawLegend draws the names of the lines at the foot of a canvas, and returns the height that they take.
func drawLegend(c draw.Canvas, shown []series, left int, colored map[string]color.Color) vg.Length {
	style := textStyle(8, ink, false)
	style.YAlign = draw.YCenter
	const beside = swatch + swatchGap
	var names []string
	for _, name := range namesOf(shown) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	more := func(n int) string { return fmt.Sprintf("and %d more", n) }
	room := style.Width(more(len(names) + left))
	labels, widths := make([]string, len(names)), make([]vg.Length, len(names))
	for i := range names {
		labels[i] = shorten(style, names[i], c.Size().X-beside-legendGap-room)
		widths[i] = beside + style.Width(labels[i])
	}
	rows := flow(widths, room, c.Size().X, left)
	height := vg.Length(len(rows)) * legendHeight
	at, fitted := 0, vg.Point{}
	for i, row := range rows {
		fitted = vg.Point{X: c.Min.X, Y: c.Min.Y + height - (vg.Length(i)+0.5)*legendHeight}
		for range row {
			mark := []vg.Point{fitted, {X: fitted.X + swatch, Y: fitted.Y}}
			c.StrokeLines(draw.LineStyle{Color: colored[names[at]], Width: 2.5}, mark)
			c.FillText(style, vg.Point{X: fitted.X + beside, Y: fitted.Y}, labels[at])
			fitted.X += widths[at] + legendGap
			at++
		}
	}
	if left += len(names) - at; left > 0 {
		style.Color = shaded
		c.FillText(style, fitted, more(left))
	}
	return height + padding/2
}

// flow returns how many of some entries each row takes, legendRows at most. After the last one there is room for a text that says how many
// more there are, if there are any; left of them have no entry.
func flow(widths []vg.Length, more, width vg.Length, left int) []int {
	rows, at := []int{0}, vg.Length(0)
	for i, entry := range widths {
		needed := entry
		if len(rows) == legendRows && (left > 0 || !fit(widths[i:], width-at)) {
			needed += legendGap + more
		}
		if at+needed > width && at > 0 {
			if len(rows) == legendRows {
				break
			}
			rows, at = append(rows, 0), 0
		}
		rows[len(rows)-1]++
		at += entry + legendGap
	}
	if left > 0 && at+more > width {
		rows = append(rows, 0)
	}
	return rows
}

// fit reports whether entries fit side by side.
func fit(widths []vg.Length, width vg.Length) bool {
	total := -vg.Length(legendGap)
	for _, entry := range widths {
		total += entry + legendGap
	}
	return total <= width
}

// shorten returns as much of the beginning of a text as fits.
func shorten(style draw.TextStyle, text string, width vg.Length) string {
	if style.Width(text) <= width {
		return text
	}
	letters := []rune(text)
	for len(letters) > 0 && style.Width(string(letters)+"…") > width {
		letters = letters[:len(letters)-1]
	}
	return strings.TrimSpace(string(letters)) + "…"
}
